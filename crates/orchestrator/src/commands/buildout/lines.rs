//! Items from a file: JSON lines or CSV, each with its place in the file.

use std::io::{BufRead, Read};

use acta_core::store::{Dedup, NewJob};
use acta_core::{Error, Json, Label, Name, Span, Traceparent};
use anyhow::Result;
use serde::{Deserialize, Serializer};

use crate::exit::{Exit, Fault};
use crate::settings::Settings;

/// What can be said of an item, in a line or by flags. What is missing is left open.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Line {
    pub(super) payload: Option<Json>,
    pub(super) lane: Option<String>,
    pub(super) key: Option<String>,
    pub(super) unique: Option<bool>,
    pub(super) max_attempts: Option<u32>,
    pub(super) retryable: Option<bool>,
    pub(super) run_at: Option<String>,
    pub(super) expires_at: Option<String>,
    pub(super) lease: Option<String>,
    pub(super) priority: Option<u8>,
    pub(super) name: Option<String>,
    pub(super) traceparent: Option<String>,
}

impl Line {
    /// What this line says, else what `others` says.
    fn or(self, others: &Self) -> Self {
        let others = others.clone();
        Self {
            payload: self.payload.or(others.payload),
            lane: self.lane.or(others.lane),
            key: self.key.or(others.key),
            unique: self.unique.or(others.unique),
            max_attempts: self.max_attempts.or(others.max_attempts),
            retryable: self.retryable.or(others.retryable),
            run_at: self.run_at.or(others.run_at),
            expires_at: self.expires_at.or(others.expires_at),
            lease: self.lease.or(others.lease),
            priority: self.priority.or(others.priority),
            name: self.name.or(others.name),
            traceparent: self.traceparent.or(others.traceparent),
        }
    }

    /// The job that it asks for.
    pub(super) fn into_job(self, settings: &Settings) -> Result<NewJob> {
        let key = self.key.as_deref().map(|key| Label::new("key", key)).transpose()?;
        let dedup = if self.unique == Some(true) {
            let Some(key) = key.clone() else {
                return Err(Error::invalid("unique", "true", "needs a key to be unique by").into());
            };
            Some(Dedup { key, while_live: false })
        } else {
            None
        };
        let instant =
            |what, text: &Option<String>| text.as_deref().map(|text| settings.instant_to_come(what, text)).transpose();
        Ok(NewJob {
            name: self.name.as_deref().map(|name| Name::new("name", name)).transpose()?,
            lane: self.lane.as_deref().map(|lane| Label::new("lane", lane)).transpose()?,
            priority: self.priority,
            run_at: instant("runAt", &self.run_at)?,
            expires_at: instant("expiresAt", &self.expires_at)?,
            lease: self.lease.as_deref().map(str::parse::<Span>).transpose()?,
            key,
            dedup,
            max_attempts: self.max_attempts,
            retryable: self.retryable,
            backoff: None,
            traceparent: self.traceparent.as_deref().map(Traceparent::new).transpose()?,
            payload: self.payload.unwrap_or_else(Json::null),
        })
    }
}

/// Where items come from, for errors.
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    pub(super) settings: &'a Settings,
    /// What a line leaves open.
    pub(super) open: &'a Line,
}

impl Source<'_> {
    fn wrong(&self, place: &str, why: impl std::fmt::Display) -> anyhow::Error {
        let message = format!("{}: {place}: {why}", self.name);
        Fault::new(Exit::Usage, message).hint("nothing was added; mend the file and add it again").into()
    }

    fn job(&self, place: &str, line: Line) -> Result<NewJob> {
        line.or(self.open).into_job(self.settings).map_err(|fault| self.wrong(place, fault))
    }

    /// Reads an object a line; empty lines are none.
    pub(super) fn json_lines(&self, mut reader: impl BufRead) -> Result<Vec<NewJob>> {
        let mut jobs = Vec::new();
        let mut bytes = Vec::new();
        for number in 1.. {
            bytes.clear();
            if reader.read_until(b'\n', &mut bytes).map_err(|fault| self.wrong(&format!("line {number}"), fault))? == 0
            {
                break;
            }
            let place = format!("line {number}");
            let text = std::str::from_utf8(&bytes).map_err(|_| self.wrong(&place, "this is not UTF-8"))?;
            if text.trim().is_empty() {
                continue;
            }
            if !text.trim_start().starts_with('{') {
                return Err(self.wrong(&place, "this is no object like {\"payload\": 1}"));
            }
            let line = serde_json::from_str(text).map_err(|fault| {
                let said = fault.to_string();
                let why = said.split(" at line ").next().unwrap_or(&said);
                self.wrong(&format!("line {number}, column {}", fault.column()), why)
            })?;
            jobs.push(self.job(&place, line)?);
        }
        Ok(jobs)
    }

    /// Reads rows under headings.
    pub(super) fn csv(&self, reader: impl Read) -> Result<Vec<NewJob>> {
        let mut rows = csv::Reader::from_reader(reader);
        let headings = rows.headers().map_err(|fault| self.wrong("line 1", fault))?.clone();
        for (index, heading) in headings.iter().enumerate() {
            if headings.iter().take(index).any(|other| other == heading) {
                return Err(self.wrong("line 1", format!("the column {heading:?} is there twice")));
            }
        }
        let mut jobs = Vec::new();
        for row in rows.records() {
            let row = row.map_err(|fault| {
                let line = fault.position().map_or(0, csv::Position::line);
                self.wrong(&format!("line {line}"), fault)
            })?;
            let place = format!("line {}", row.position().map_or(0, csv::Position::line));
            let mut line = Line::default();
            let mut payload = Vec::new();
            for (heading, cell) in headings.iter().zip(row.iter()) {
                let is_field = line.set(heading, cell);
                let is_field = is_field.map_err(|why| self.wrong(&format!("{place}, column {heading:?}"), why))?;
                if !is_field {
                    payload.push((heading, cell));
                }
            }
            if line.payload.is_none() {
                let text = object(&payload).map_err(|fault| self.wrong(&place, fault))?;
                line.payload = Some(Json::new(text).map_err(|fault| self.wrong(&place, fault))?);
            } else if let Some((heading, _)) = payload.first() {
                let why = format!("there is a column payload, so {heading:?} belongs to nothing");
                return Err(self.wrong("line 1", why));
            }
            jobs.push(self.job(&place, line)?);
        }
        Ok(jobs)
    }
}

impl Line {
    /// Sets the field that a column is named like; false if there is no such field. An empty cell says nothing.
    fn set(&mut self, heading: &str, cell: &str) -> std::result::Result<bool, String> {
        fn parsed<T: std::str::FromStr>(cell: &str, what: &str) -> std::result::Result<Option<T>, String> {
            if cell.is_empty() {
                return Ok(None);
            }
            cell.parse().map(Some).map_err(|_| format!("{cell:?} is not {what}"))
        }
        let text = |cell: &str| Some(cell.to_owned()).filter(|cell| !cell.is_empty());
        match heading {
            "payload" => self.payload = Some(Json::new(cell).map_err(|fault| fault.to_string())?),
            "lane" => self.lane = text(cell),
            "key" => self.key = text(cell),
            "unique" => self.unique = parsed(cell, "true or false")?,
            "maxAttempts" => self.max_attempts = parsed(cell, "a number")?,
            "retryable" => self.retryable = parsed(cell, "true or false")?,
            "runAt" => self.run_at = text(cell),
            "expiresAt" => self.expires_at = text(cell),
            "lease" => self.lease = text(cell),
            "priority" => self.priority = parsed(cell, "a number from 0 to 100")?,
            "name" => self.name = text(cell),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The text of an object with these members, in their order.
fn object(members: &[(&str, &str)]) -> serde_json::Result<String> {
    let mut text = Vec::new();
    serde_json::Serializer::new(&mut text).collect_map(members.iter().copied())?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
