//! Fenced blocks of a page, with the comments above them.

/// A fenced block.
#[derive(Debug)]
pub struct Block {
    page: String,
    /// Of the fence, from 1.
    line: usize,
    pub lang: String,
    pub text: String,
    /// The comments directly above it.
    notes: Vec<String>,
    /// The last whole policy above it in its section.
    pub policy: Option<String>,
}

/// What becomes of the commands in a block.
#[derive(Debug, PartialEq, Eq)]
pub enum Fate {
    /// There are none.
    None,
    Node {
        kind: String,
        setups: Vec<String>,
    },
    RunBy(String),
    NotRun,
}

/// A command of the agent, or `reboot`.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    pub line: String,
    /// The lines below it; empty if its output is not shown.
    pub shown: String,
}

/// Programs whose names begin a line that a reader would type.
const PROGRAMS: [&str; 14] = [
    "gdr-agent",
    "apt",
    "apt-get",
    "dnf",
    "zypper",
    "cargo",
    "systemctl",
    "scripts/",
    "ansible",
    "promtool",
    "systemd-id128",
    "reboot",
    "curl",
    "/var/lib/gdr-agent/",
];

/// All blocks of a page.
pub fn of(page: &str, text: &str) -> Vec<Block> {
    let mut out: Vec<Block> = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    let mut policy = None;
    let mut open: Option<Block> = None;
    for (at, line) in text.lines().enumerate() {
        let bare = line.trim();
        if let Some(mut block) = open.take() {
            if bare == "```" {
                if block.lang == "toml" && Block::is_whole(&block.text) {
                    policy = Some(block.text.clone());
                }
                out.push(block);
            } else {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
        } else if let Some(lang) = bare.strip_prefix("```") {
            open = Some(Block {
                page: page.to_owned(),
                line: at + 1,
                lang: lang.to_owned(),
                text: String::new(),
                notes: std::mem::take(&mut notes),
                policy: policy.clone(),
            });
        } else if let Some(note) = bare
            .strip_prefix("<!--")
            .and_then(|n| n.strip_suffix("-->"))
        {
            notes.push(note.trim().to_owned());
        } else if !bare.is_empty() {
            notes.clear();
            if line.starts_with("# ") || line.starts_with("## ") {
                policy = None;
            }
        }
    }
    assert!(open.is_none(), "{page}: a block is not closed");
    out
}

impl Block {
    pub fn at(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }

    /// Whether TOML is a policy by itself, not a drop-in.
    pub fn is_whole(toml: &str) -> bool {
        toml.lines().any(|line| line == "version = 1")
    }

    /// What the comment of this name above it says.
    pub fn note(&self, name: &str) -> Option<&str> {
        let note = self.notes.iter().find(|note| note.starts_with(name))?;
        note.get(name.len()..).map(str::trim)
    }

    /// What becomes of its commands.
    ///
    /// # Errors
    /// It has commands, and nothing says so.
    pub fn fate(&self) -> Result<Fate, String> {
        if !["", "console", "sh"].contains(&self.lang.as_str()) {
            return Ok(Fate::None);
        }
        if let Some(node) = self.note("node:") {
            if self.others() && self.note("others:").is_none_or(|why| why.len() < 10) {
                return Err("it has other commands than the agent's, and no `others: WHY`".into());
            }
            let mut words = node.split_whitespace().map(str::to_owned);
            let kind = words.next().ok_or("`node:` needs a kind")?;
            return Ok(Fate::Node {
                kind,
                setups: words.collect(),
            });
        }
        if let Some(name) = self.note("run by:") {
            return Ok(Fate::RunBy(name.to_owned()));
        }
        if let Some(why) = self.note("not run:") {
            return match why.len() >= 10 {
                true => Ok(Fate::NotRun),
                false => Err("`not run:` needs a reason".into()),
            };
        }
        if self.lang == "sh" || self.text.lines().any(is_command) {
            return Err("it shows commands; say what runs them, see tests/tests/docs".into());
        }
        Ok(Fate::None)
    }

    fn others(&self) -> bool {
        let typed = self.text.lines().filter_map(prompted);
        typed.into_iter().any(|line| !is_ours(line))
    }

    /// The agent's commands and reboots, with what is shown below each.
    pub fn commands(&self) -> Vec<Command> {
        let mut out: Vec<Command> = Vec::new();
        let mut ours = false;
        for line in self.text.lines() {
            if let Some(typed) = prompted(line) {
                ours = is_ours(typed);
                if ours {
                    let line = typed.split("  #").next().unwrap_or(typed).trim();
                    out.push(Command {
                        line: line.to_owned(),
                        shown: String::new(),
                    });
                }
            } else if let Some(last) = out.last_mut().filter(|_| ours) {
                last.shown.push_str(line);
                last.shown.push('\n');
            }
        }
        out
    }
}

/// A line that shows what somebody types.
fn prompted(line: &str) -> Option<&str> {
    line.strip_prefix("$ ")
}

fn is_ours(typed: &str) -> bool {
    let first = typed.split_whitespace().next();
    matches!(first, Some("gdr-agent" | "reboot"))
}

fn is_command(line: &str) -> bool {
    prompted(line).is_some()
        || line.strip_prefix("# ").is_some_and(begins)
        || begins(line.trim_start())
}

fn begins(line: &str) -> bool {
    PROGRAMS.iter().any(|name| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| name.ends_with('/') || rest.starts_with(' '))
    })
}
