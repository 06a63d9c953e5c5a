//! The macro that declares a resource.

/// Declares a resource: its fields as clients set them (`draft`), its stored fields that follow from those (`derived`),
/// its fields that are read by a subquery (`computed`), and columns that start with a fixed value (`initially`).
macro_rules! resource {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $(#[$id_about:meta])*
            id: $id:ty,
            draft: { $($(#[$field_about:meta])* $field:ident: $type:ty,)+ },
            $(derived: { $($(#[$derived_about:meta])* $derived:ident: $derived_type:ty = $derive:path,)+ },)?
            $(computed: { $($(#[$computed_about:meta])* $computed:ident: $computed_type:ty = $query:literal,)+ },)?
            $(#[$revision_about:meta])*
            revision,
        }
        noun: $noun:literal, table: $table:literal, path: $path:literal
        $(, initially: { $($initial:ident = $value:literal),+ })?
    ) => {
        /// The fields that you set.
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct Draft {
            $($(#[$field_about])* pub(crate) $field: $type,)+
        }

        #[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
        $(#[$about])*
        pub(crate) struct $name {
            $(#[$id_about])*
            pub(crate) id: $id,
            #[serde(flatten)]
            pub(crate) draft: Draft,
            $($($(#[$derived_about])* pub(crate) $derived: $derived_type,)+)?
            $($($(#[$computed_about])* pub(crate) $computed: $computed_type,)+)?
            $(#[$revision_about])*
            pub(crate) revision: i64,
            /// When it was created.
            pub(crate) created_at: $crate::base::time::Timestamp,
            /// When it last changed.
            pub(crate) updated_at: $crate::base::time::Timestamp,
        }

        impl $crate::operations::resource::Declared for $name {
            type Id = $id;
            type Draft = Draft;

            const NOUN: &'static str = $noun;
            const TABLE: &'static str = $table;
            const PATH: &'static str = $path;
            const PATH_OF_ONE: &'static str = concat!($path, "/{id}");
            const COLUMNS: &'static str = concat!(
                "id, ", $(stringify!($field), ", ",)+ $($(stringify!($derived), ", ",)+)?
                $($($query, " AS ", stringify!($computed), ", ",)+)? "revision, created_at, updated_at"
            );
            const NAMES: &'static str = concat!(
                "id, ", $(stringify!($field), ", ",)+ $($(stringify!($derived), ", ",)+)?
                $($(stringify!($computed), ", ",)+)? "revision, created_at, updated_at"
            );
            const BYTES: &'static str =
                concat!($("COALESCE(OCTET_LENGTH(", stringify!($field), "), 0) + ",)+ "0");
            const INSERT: &'static str = $crate::rendered_sql!(concat!(
                "INSERT INTO ", $table, " (workspace_id, id, ",
                $(stringify!($field), ", ",)+ $($(stringify!($derived), ", ",)+)? $($(stringify!($initial), ", ",)+)?
                "revision, created_at, updated_at) VALUES (:ws, :id, ",
                $(":", stringify!($field), ", ",)+ $($(":", stringify!($derived), ", ",)+)? $($($value, ", ",)+)?
                "1, :updated_at, :updated_at)"
            ), &["id", $(stringify!($field),)+ $($(stringify!($derived),)+)? "updated_at"]);
            const UPDATE: &'static str = $crate::rendered_sql!(concat!(
                "UPDATE ", $table, " SET ",
                $(stringify!($field), " = :", stringify!($field), ", ",)+
                $($(stringify!($derived), " = :", stringify!($derived), ", ",)+)?
                "revision = revision + 1, updated_at = :updated_at WHERE workspace_id = :ws AND id = :id"
            ), &["id", $(stringify!($field),)+ $($(stringify!($derived),)+)? "updated_at"]);

            fn read(
                row: $crate::ports::statement::Row<'_>,
            ) -> Result<Self, $crate::storage::fault::Fault> {
                use $crate::storage::column::Column;
                Ok(Self {
                    id: Column::read(row, "id")?,
                    draft: Draft { $($field: Column::read(row, stringify!($field))?,)+ },
                    $($($derived: Column::read(row, stringify!($derived))?,)+)?
                    $($($computed: Column::read(row, stringify!($computed))?,)+)?
                    revision: Column::read(row, "revision")?,
                    created_at: Column::read(row, "created_at")?,
                    updated_at: Column::read(row, "updated_at")?,
                })
            }

            fn new(id: $id, draft: Draft, now: $crate::base::time::Timestamp) -> Self {
                Self {
                    id,
                    $($($derived: $derive(&draft),)+)?
                    $($($computed: Default::default(),)+)?
                    draft,
                    revision: 1,
                    created_at: now,
                    updated_at: now,
                }
            }

            fn changed(&self, draft: Draft, now: $crate::base::time::Timestamp) -> Self {
                Self {
                    $($($derived: $derive(&draft),)+)?
                    draft,
                    revision: self.revision + 1,
                    updated_at: now,
                    ..self.clone()
                }
            }

            fn values(&self) -> Vec<$crate::ports::statement::Value> {
                use $crate::storage::column::Column;
                vec![
                    self.id.value(),
                    $(self.draft.$field.value(),)+
                    $($(self.$derived.value(),)+)?
                    self.updated_at.value(),
                ]
            }

            fn id(&self) -> &$id {
                &self.id
            }

            fn draft(&self) -> &Draft {
                &self.draft
            }

            fn revision(&self) -> i64 {
                self.revision
            }

            fn updated_at(&self) -> $crate::base::time::Timestamp {
                self.updated_at
            }
        }
    };
}
pub(crate) use resource;
