//! The definitions that a worker has: read before anything is claimed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acta_core::Namespace;
use anyhow::Result;

use crate::exit::{Exit, Fault};
use crate::jobdef::Jobdef;
use crate::printer::Printer;
use crate::settings::Settings;

/// The definitions of the queue's jobs, of the paths that were named or of the root's folder.
pub(super) fn load(
    settings: &Settings,
    printer: &Printer,
    named: &[PathBuf],
    namespace: &Namespace,
) -> Result<Vec<Jobdef>> {
    let folder = settings.jobdefs();
    let paths = match named {
        [] if folder.is_dir() => files_of(&folder)?,
        [] => {
            let message = format!("{}: there is no such folder", folder.display());
            return Err(Fault::new(Exit::Usage, message).hint(HINT).into());
        }
        named => expand(named)?,
    };
    let mut found: BTreeMap<String, (PathBuf, Jobdef)> = BTreeMap::new();
    for path in paths {
        let jobdef = Jobdef::read(&path, "nothing was claimed")?;
        if let Some((other, _)) = found.get(jobdef.name.as_str()) {
            let message = format!("{} and {} both define {}", other.display(), path.display(), jobdef.name);
            return Err(Fault::new(Exit::Usage, message).hint("a name has one definition").into());
        }
        found.insert(jobdef.name.to_string(), (path, jobdef));
    }
    let mut ours = Vec::new();
    for (path, jobdef) in found.into_values() {
        if jobdef.queue() == namespace.name() {
            ours.push(jobdef);
        } else {
            let (path, queue) = (path.display(), jobdef.queue());
            printer.complain(&format!("skipping {path}: its queue is {queue}, this worker's is {namespace}"));
        }
    }
    if ours.is_empty() {
        let message = format!("there is no job definition whose queue is {}", namespace.name());
        return Err(Fault::new(Exit::Usage, message).hint(HINT).into());
    }
    Ok(ours)
}

const HINT: &str = "name job definitions, or folders of them, with --jobdefs";

/// The files that the paths stand for, each once.
fn expand(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for path in named {
        let files = if path.is_dir() { files_of(path)? } else { vec![path.clone()] };
        let is_new = |path: &PathBuf| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone()));
        paths.extend(files.into_iter().filter(is_new));
    }
    Ok(paths)
}

/// Each `*.json` of a folder, by name.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json") && !path.is_dir() {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    };
    list().map_err(|fault| Fault::new(Exit::Usage, format!("{}: {fault}", folder.display())).hint(HINT).into())
}
