//! What `docs/design.md` says about rooms.

use std::collections::{BTreeMap, BTreeSet};

/// The arrows, and the folders that may hold `unsafe`.
pub struct Page {
    /// Room to the rooms and crates it may use.
    pub arrows: BTreeMap<String, BTreeSet<String>>,
    /// What arrows point at and is no room: crates of others, kept to one room.
    pub outside: BTreeSet<String>,
    /// Folders in which `unsafe` may occur.
    pub unsafe_folders: Vec<String>,
}

impl Page {
    /// Reads the arrows (`` `a -> b, c` ``) and the sentence `` `unsafe` lives in `x`, ...; ``.
    ///
    /// # Panics
    /// When the page has no arrows or no such sentence.
    pub fn read(text: &str) -> Self {
        let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let section =
            text.split("## Who may use whom").nth(1).expect("a section on who may use whom");
        let section = section.split("\n## ").next().unwrap_or(section);
        for quoted in quotes(section) {
            if let Some((room, uses)) = quoted.split_once(" -> ") {
                let list = arrows.entry(room.trim().to_owned()).or_default();
                // A second mention explains an arrow (`- **`hygiene -> sys`**`); it adds nothing new.
                list.extend(uses.split(',').map(|used| used.trim().to_owned()));
            }
        }
        assert!(!arrows.is_empty(), "docs/design.md has no arrows");
        let outside = arrows.values().flatten().filter(|used| !arrows.contains_key(*used));
        let outside = outside.cloned().collect();

        let sentence =
            text.split("`unsafe` lives in ").nth(1).expect("a sentence on where unsafe lives");
        let sentence = sentence.split(';').next().unwrap_or(sentence);
        let unsafe_folders = quotes(sentence).map(str::to_owned).collect();
        Self { arrows, outside, unsafe_folders }
    }
}

/// The texts between backticks.
fn quotes(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
