//! A migration that was released never changes: databases have it as it was. `migrations.sha256` has the hash of each, as
//! `sha256sum migrations/*.sql directory/*.sql` writes it.
use std::collections::BTreeMap;

use sidetone_engine::base::hash::sha256_hex;
use sidetone_engine::storage::migrations::{DIRECTORY_MIGRATIONS, MIGRATIONS};

const FROZEN: &str = include_str!("migrations.sha256");

#[test]
fn migrations_are_as_they_were_released() {
    let mut frozen: BTreeMap<&str, &str> =
        FROZEN.lines().filter_map(|line| line.split_once("  ")).map(|(hash, name)| (name, hash)).collect();
    for (folder, migrations) in [("migrations", MIGRATIONS), ("directory", DIRECTORY_MIGRATIONS)] {
        for migration in migrations {
            let (name, hash) = (format!("{folder}/{}", migration.name), sha256_hex(migration.sql.as_bytes()));
            let was = frozen.remove(name.as_str());
            assert!(
                was.is_some(),
                "engine/{name} is new: add this line to engine/tests/migrations.sha256:\n{hash}  {name}"
            );
            assert_eq!(
                was,
                Some(hash.as_str()),
                "engine/{name}: a migration that was released is never changed; add a new one"
            );
        }
    }
    assert!(frozen.is_empty(), "a migration that was released is never removed: {frozen:?}");
}
