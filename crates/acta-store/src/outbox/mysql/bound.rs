//! Statements with lists: MySQL takes none for a question mark.

use mysql_async::Value;

/// How many values a list may have in a statement. Shorter ones are filled up with their last value, so that few statements are
/// prepared.
const LENGTHS: [usize; 4] = [1, 10, 100, MOST];
/// How many at most: of a thousand and more MariaDB may make a table of its own, and look at all rows for it.
pub(super) const MOST: usize = 900;

/// What stands for a `$1`.
#[derive(Clone, Debug)]
pub(super) enum Param {
    One(Value),
    /// Up to [`MOST`] of them.
    Many(Vec<Value>),
}

pub(super) fn one(value: impl Into<Value>) -> Param {
    Param::One(value.into())
}

pub(super) fn many(ids: &[i64]) -> Param {
    Param::Many(ids.iter().map(|id| Value::from(*id)).collect())
}

pub(super) fn texts<'t>(texts: impl Iterator<Item = &'t str>) -> Param {
    Param::Many(texts.map(Value::from).collect())
}

/// The statement with question marks, and what they stand for, in their order.
pub(super) fn bound(sql: &str, params: &[Param]) -> (String, Vec<Value>) {
    let (mut text, mut values) = (String::new(), Vec::new());
    for (index, part) in sql.split('$').enumerate() {
        let rest = part.trim_start_matches(|letter: char| index > 0 && letter.is_ascii_digit());
        let number: Option<usize> = part[..part.len() - rest.len()].parse().ok();
        match number.and_then(|number| params.get(number.checked_sub(1)?)) {
            Some(Param::One(value)) => {
                text.push('?');
                values.push(value.clone());
            }
            Some(Param::Many(list)) => {
                let all = filled(list);
                text.push_str(&vec!["?"; all.len()].join(", "));
                values.extend(all);
            }
            None => {}
        }
        text.push_str(rest);
    }
    (text, values)
}

fn filled(values: &[Value]) -> Vec<Value> {
    // Nothing is in a list of NULL.
    let last = values.last().cloned().unwrap_or(Value::NULL);
    let length = LENGTHS.into_iter().find(|length| *length >= values.len()).unwrap_or(values.len());
    let more = std::iter::repeat_n(last, length - values.len());
    values.iter().cloned().chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_gets_its_value_and_lists_are_filled_up() {
        let params = [one("token"), many(&[7, 8]), one(3)];
        let (text, values) = bound("a = $3 AND id IN ($2) AND token = $1 AND b = $3", &params);
        assert_eq!(text, "a = ? AND id IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) AND token = ? AND b = ?");
        let ids = [7, 8, 8, 8, 8, 8, 8, 8, 8, 8].map(Value::from);
        let wanted: Vec<Value> = [Value::from(3)].into_iter().chain(ids).chain(["token".into(), 3.into()]).collect();
        assert_eq!(values, wanted);
        assert_eq!(bound("id IN ($1)", &[many(&[])]), ("id IN (?)".into(), vec![Value::NULL]));
        assert_eq!(bound("id IN ($1)", &[many(&[0; 101])]).1.len(), MOST);
        assert_eq!(bound("SELECT 1", &[]), ("SELECT 1".into(), vec![]));
    }
}
