use super::*;
#[test]
fn probe() {
    for template in Template::ALL {
        match Scenario::parse("t.toml", template.text()) {
            Ok(s) => {
                let v = s.sweep().next().unwrap();
                println!("{}\n{}", v.resolved.to_json(), v.resolved.to_toml())
            }
            Err(e) => println!("{e}"),
        }
    }
    println!(
        "{}",
        refused(&minimal(
            "[hots]\n[hosts.c]\nmtuu=4\n[[flows]]\nname=\"x\"\nfrom=\"q\"\nto=\"b\"\nkind=\"transfer\"\nsize=1000\n[sweep]\nlinks.a-b.rate=[\"3Mbit/s\"]\nfoo.bar=[1]\nlinks.0.delay=[\"3ms\",\"4\"]\n"
        ))
    );
}
