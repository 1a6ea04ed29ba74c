//! HyperQueue and Ray, through their Python modules.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::super::super::interruption::Interruption;
use super::super::progress::Progress;
use super::{Engine, Task};

/// The program that talks with the engines.
const DRIVER: &str = include_str!("driver.py");
/// The interval between two looks at whether the command is to end.
const LOOK: Duration = Duration::from_millis(50);

/// What an engine is to do.
pub(super) struct Work<'a> {
    pub(super) engine: Engine,
    /// The scenario's name.
    pub(super) name: &'a str,
    /// The directory for tasks to be started in.
    pub(super) directory: &'a Path,
    /// The command of a task, but for the name of its run.
    pub(super) command: &'a [String],
}

impl Work<'_> {
    /// Lets the engine do all tasks. A task may fail without an error here.
    pub(super) fn run(
        &self,
        tasks: &[Task<'_>],
        interruption: &Interruption,
        progress: &Progress,
    ) -> anyhow::Result<()> {
        let module = match self.engine {
            Engine::Ray => "ray",
            _ => "hyperqueue",
        };
        let python = std::env::var_os("TRANSOM_PYTHON").unwrap_or_else(|| "python3".into());
        let shown = python.to_string_lossy().into_owned();
        let mut child = Command::new(&python)
            .args(["-c", DRIVER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| {
                format!("cannot start {shown}, which the engine {module} needs; TRANSOM_PYTHON names another Python")
            })?;
        let (input, output, errors) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let task = |task: &Task<'_>| json!({ "run": task.run.directory, "log": task.log });
        let order = json!({
            "engine": module,
            "name": self.name,
            "directory": self.directory,
            "command": self.command,
            "tasks": tasks.iter().map(task).collect::<Vec<_>>(),
        });
        // A driver that fails early reads nothing, and says why below.
        let written = thread::spawn(move || {
            let _ = input.map(|mut input| input.write_all(order.to_string().as_bytes()));
        });
        let said = thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.map(|mut errors| errors.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        });
        let ended = Arc::new(AtomicBool::new(false));
        let ender = thread::spawn({
            let (ended, interruption, pid) =
                (ended.clone(), interruption.clone(), Pid::from_child(&child));
            move || {
                while !ended.load(Ordering::Relaxed) {
                    if interruption.is_requested() {
                        // It is not reaped before `ended` is set.
                        let _ = kill_process(pid, Signal::TERM);
                        return;
                    }
                    thread::sleep(LOOK);
                }
            }
        });
        let mut done = 0;
        let mut wrong = None;
        for line in BufReader::new(output.context("a driver without output")?).lines() {
            let Ok(line) = line else { break };
            // Modules print what they like.
            let Ok(told) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
            if let Some(now) = told["done"].as_u64() {
                (done..now).for_each(|_| progress.whole());
                done = done.max(now);
            }
            if let Some(text) = told["error"].as_str() {
                wrong = Some(text.to_owned());
            }
        }
        ended.store(true, Ordering::Relaxed);
        let _ = (written.join(), ender.join());
        let status = child.wait().context("cannot wait for the engine's driver")?;
        let said = said.join().unwrap_or_default();
        if interruption.is_requested() || status.success() {
            return Ok(());
        }
        match wrong {
            Some(text) => bail!("{text}"),
            None => {
                let last: Vec<&str> = said.lines().rev().take(5).collect();
                let last: Vec<&str> = last.into_iter().rev().collect();
                Err(anyhow!("the engine {module} failed:\n{}", last.join("\n")))
            }
        }
    }
}
