"""Why a share beside the kernel is outside of 0.8 to 1.25: a letter in the table, and a list of the reasons below it."""

from statistics import mean

REASONS = {
    "policer": (
        "Linux' BBR takes losses of more than a fifth for a policer (`bbr_lt_loss_thresh`). It then keeps to the rate that it had, for 48 round trips, and does not probe.\n  "
        "`draft-cardwell-iccrg-bbr-congestion-control-00` has no such rule. On these paths the kernel sent more than a fifth again. A capture of the path of 20 Mbit/s, 20 ms and\n  "
        "0.2 products, one beside one, shows the kernel at one rate for 1.4 s and more at a time"
    ),
    "losses": (
        "BBRv3 slows down where more than 2 % are lost (`draft-ietf-ccwg-bbr-06`, sections 5.5.10.2 and 5.5.10.3), and the kernel's version 1 does not. On these paths the kernel\n  "
        "sent more than 2 % again"
    ),
    "windows": (
        "nearly nothing is lost there, so each flow is held back by its window of two products. Linux adds to it what acknowledgements aggregate (`bbr_extra_acked_gain`), and the\n  "
        "draft does not. `bbr(linux=on)` does, and its share is from 1.00 to 1.15 on those of these paths that were run in time"
    ),
    "chance": "chance: with more seeds, which have the random wait, the mean of all is from 0.8 to 1.25",
    "open": "the reason is not known",
}


def is_fair(share):
    return 0.8 <= share <= 1.25


def sent_again(points, cell, flow, seconds=20, segment=1448):
    """Segments that a flow sent again, over those that it delivered: the mean of both orders."""
    found = [values for key, values in points.items() if key.rsplit(" long ", 1)[0] == cell]
    return mean(mean(one[f"again, {flow}"]) * segment * 8 / (mean(one[f"goodput, {flow}"]) * seconds) for one in found)


def verdict(name, cell, share, points, more):
    """The name of the reason, or nothing where the share is fair. `more` has the shares of all seeds, where there is more than one."""
    if is_fair(share):
        return None
    algorithm = name.split("-")[1]
    if algorithm in ("bbr", "bbr1"):
        ours, theirs = (sent_again(points, cell, flow) for flow in ["transom", "kernel"])
        if share > 1.25 and theirs > 50 / 256:
            return "policer"
        if algorithm == "bbr" and share < 0.8 and theirs > 0.02:
            return "losses"
        if algorithm == "bbr1" and share < 0.8 and max(ours, theirs) < 0.02:
            return "windows"
    return "chance" if cell in more and is_fair(more[cell][0]) else "open"


def letters(names):
    """A letter for each reason that is used, in the order of the reasons."""
    return {name: chr(ord("a") + number) for number, name in enumerate(one for one in REASONS if one in names)}


def legend(marks):
    """The reasons below a table."""
    return "".join(f"- {letter}: {REASONS[name]}.\n" for name, letter in marks.items())
