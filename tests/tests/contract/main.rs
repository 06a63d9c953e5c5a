//! Contract tests. `SIDETONE_TEST_HOST=native cargo test` runs them against the real binary, `worker` against
//! the Worker in workerd; tests that do not apply there are reported as ignored.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are tests: they panic when something is wrong"
)]

mod agent;
mod archiving;
mod arriving;
mod assistants;
mod auth;
mod bad_input;
mod batches;
mod call_properties;
mod call_search;
mod call_statistics;
mod calls;
mod carried_secrets;
mod carriers;
mod dashboard;
mod dashboard_attacks;
mod dashboard_audit;
mod dashboard_conflicts;
mod dashboard_first_workspace;
mod dashboard_google;
mod dashboard_operator;
mod dashboard_people;
mod dashboard_runs;
mod dashboard_sign_in;
mod dashboard_sign_up;
mod dashboard_stored;
mod dashboard_templates;
mod dashboard_workspaces;
mod databases;
mod delete_by_filter;
mod deliveries;
mod delivery_signatures;
mod erasing;
mod error_messages;
mod events;
mod every_field;
mod every_operation;
mod faults;
mod first_mistakes;
mod following;
mod grants;
mod hosts;
mod inline_runs;
mod keys;
mod knowledge;
mod lateness;
mod lists;
mod live;
mod live_audio;
mod made_up_deliveries;
mod mcp;
mod mcp_batches;
mod mcp_prompts;
mod mcp_resources;
mod mcp_tool_list;
mod memory;
mod metadata;
mod model_costs;
mod model_faults;
mod moves;
mod neighbours;
mod numbers;
mod openapi_3_0;
mod outcomes;
mod private_targets;
mod properties;
mod reads;
mod recordings;
mod reference_examples;
mod revisions;
mod round_trips;
mod runs;
mod send_keys;
mod simulations;
mod snapshots;
mod spending;
mod tool_mocks;
mod tool_tests;
mod tools;
mod traces;
mod transfers;
mod unread;
mod variables;
mod voice_runs;
mod voicemail;
mod waiting;
mod webhook_changes;
mod webhooks;
mod what_ran;
