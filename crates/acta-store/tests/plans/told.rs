//! Plans that the server tells the client, and what is written down of them.

use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use log::{LevelFilter, Log, Metadata, Record};
use serde_json::Value;

/// The settings of a database that make the server tell all plans, as notices, to every client.
pub(crate) const SETTINGS: [&str; 6] = [
    "session_preload_libraries = 'auto_explain'",
    "auto_explain.log_min_duration = 0",
    "auto_explain.log_nested_statements = on",
    "auto_explain.log_format = json",
    "client_min_messages = log",
    "log_min_messages = fatal",
];

static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
static ALONE: Mutex<()> = Mutex::new(());

/// The driver writes notices to the process's log, whoever's connection it is.
struct Listener;

impl Log for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let text = record.args().to_string();
        if let Some((_, plan)) = text.split_once("plan:\n") {
            locked(&TOLD).push(plan.to_owned());
        }
    }

    fn flush(&self) {}
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens, and sees to it that one test at a time does.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONCE: Once = Once::new();
    let alone = locked(&ALONE);
    ONCE.call_once(|| {
        log::set_logger(&Listener).unwrap();
        log::set_max_level(LevelFilter::Info);
    });
    alone
}

/// What was told since the last time, of tables of the ledger.
pub(crate) fn take() -> Vec<Plan> {
    let told = std::mem::take(&mut *locked(&TOLD));
    let plans = told.iter().map(|plan| Plan(serde_json::from_str(plan).unwrap()));
    plans.filter(Plan::is_of_the_ledger).collect()
}

/// A call, and the plans of the statements that it came to, each once, in their order.
pub(crate) struct Verb {
    pub(crate) name: &'static str,
    pub(crate) plans: Vec<Plan>,
}

/// The plan of a statement.
pub(crate) struct Plan(Value);

/// A step of a plan.
pub(crate) struct Node<'p>(&'p Value);

impl Plan {
    /// The statement, as much as tells it from others.
    pub(crate) fn query(&self) -> String {
        let text = self.0["Query Text"].as_str().unwrap_or_default();
        let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        one_line.chars().take(100).collect()
    }

    /// Visits every step, from the outermost.
    pub(crate) fn walk<'p>(&'p self, visit: &mut impl FnMut(Node<'p>)) {
        fn down<'p>(node: &'p Value, visit: &mut impl FnMut(Node<'p>)) {
            visit(Node(node));
            for child in node["Plans"].as_array().into_iter().flatten() {
                down(child, visit);
            }
        }
        down(&self.0["Plan"], visit);
    }

    /// Whether it looks at a table, other than the server's own.
    fn is_of_the_ledger(&self) -> bool {
        let mut is_of_it = false;
        self.walk(&mut |node| {
            is_of_it |= node.text("Relation Name").is_some_and(|name| !name.starts_with("pg_"));
        });
        is_of_it
    }

    /// The steps that touch tables or sort; joins may be carried out in several ways, all of which are good.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.walk(&mut |node| {
            let is_told = ["Relation Name", "Index Name"].iter().any(|key| node.text(key).is_some());
            if is_told || node.kind() == "Sort" {
                lines.push(node.line());
            }
        });
        lines
    }
}

impl<'p> Node<'p> {
    /// What the plan says under this key.
    pub(crate) fn text(&self, key: &str) -> Option<&'p str> {
        self.0[key].as_str()
    }

    /// What kind of step it is.
    pub(crate) fn kind(&self) -> &'p str {
        self.text("Node Type").unwrap_or_default()
    }

    /// The step in one line: kind, table, index and condition.
    pub(crate) fn line(&self) -> String {
        let mut line = self.kind().to_owned();
        if let Some(operation) = self.text("Operation") {
            operation.clone_into(&mut line);
        }
        for (word, key) in [("of", "Relation Name"), ("by", "Index Name")] {
            if let Some(name) = self.text(key) {
                write!(line, " {word} {name}").unwrap();
            }
        }
        if let Some(condition) = self.text("Index Cond") {
            write!(line, " {}", without_values(condition)).unwrap();
        }
        line
    }
}

/// A condition whose values and parameters are `?`.
fn without_values(condition: &str) -> String {
    let mut text = String::new();
    let mut letters = condition.chars().peekable();
    let mut is_in_word = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                letters.by_ref().find(|letter| *letter == '\'');
                text.push('?');
            }
            '$' | '0'..='9' if !is_in_word => {
                while letters.next_if(char::is_ascii_digit).is_some() {}
                text.push('?');
            }
            _ => text.push(letter),
        }
        is_in_word = letter.is_ascii_alphanumeric() && !letter.is_ascii_digit()
            || letter == '_'
            || is_in_word && letter.is_ascii_digit();
    }
    text
}

/// All of it, to be kept: each statement once a verb.
pub(crate) fn golden(verbs: &[Verb]) -> String {
    let mut golden = String::new();
    for verb in verbs {
        writeln!(golden, "{}", verb.name).unwrap();
        let mut known = Vec::new();
        for plan in &verb.plans {
            let mut text = format!("    {}\n", plan.query());
            for line in plan.lines() {
                writeln!(text, "        {line}").unwrap();
            }
            if !known.contains(&text) {
                golden.push_str(&text);
                known.push(text);
            }
        }
        golden.push('\n');
    }
    golden
}
