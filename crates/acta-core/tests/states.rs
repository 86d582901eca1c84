//! The diagram of the states in the documentation is made from the function that decides them.

use std::collections::BTreeMap;
use std::path::Path;

use acta_core::State;
use acta_core::transition::{Event, transition};

fn diagram() -> String {
    let mut arrows: BTreeMap<(u8, u8), Vec<String>> = BTreeMap::new();
    for from in State::ALL {
        for event in Event::ALL {
            if let Some(step) = transition(from, event).filter(|step| step.to != from) {
                arrows.entry((from.code(), step.to.code())).or_default().push(format!("{event:?}"));
            }
        }
    }
    let mut text =
        String::from("```mermaid\nstateDiagram-v2\n    [*] --> blocked\n    [*] --> ready\n    [*] --> scheduled\n");
    for ((from, to), events) in arrows {
        let word = |code: u8| State::from_code(i64::from(code)).map_or("", State::word);
        text.extend([format!("    {} --> {}: {}\n", word(from), word(to), events.join(", "))]);
    }
    text.push_str("```\n");
    text
}

#[test]
fn the_documented_diagram_is_the_one_that_the_code_follows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/STATES.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let start = text.find("```mermaid").unwrap();
    let end = start + 10 + text[start + 10..].find("```\n").unwrap() + 4;
    if std::env::var_os("ACTA_UPDATE").is_some() {
        std::fs::write(&path, format!("{}{}{}", &text[..start], diagram(), &text[end..])).unwrap();
        return;
    }
    assert_eq!(&text[start..end], diagram(), "ACTA_UPDATE=1 writes it anew");
}
