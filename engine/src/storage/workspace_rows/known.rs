//! The tables with rows of workspaces. A test writes this from the migrations: tests/tests/sharding/described.rs.
use super::tables::{ByNumber, Table, integer, integer_or_null, text, text_or_null};

/// What rows of workspaces are here: pages pass between hosts that say the same.
pub const SCHEMA: &str = "0048_moves.sql 2a52befdd660835c94b35c2c255f608d0990dede87904d8813418e7277f51ae9";

/// The tables with rows of workspaces, referenced tables first.
pub static TABLES: &[Table] = &[
    Table {
        name: "workspaces", owner: "id", key: &["id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("id"), text("name"), integer("created_at"), integer_or_null("monthly_spend_limit_microusd"),
            integer("runs_at_once"), integer("calls_at_once"), integer_or_null("call_retention_days"),
            integer_or_null("recording_retention_days"), integer("snapshot_bytes"), integer("archived_until"),
            text_or_null("secret_salt"),
        ],
    },
    Table {
        name: "api_keys", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), text("name"), text("hash"), text("hint"), integer("created_at"),
            integer_or_null("revoked_at"), integer_or_null("last_used_at"),
        ],
    },
    Table {
        name: "archives_to_remove", owner: "workspace_id", key: &["call_id"], number: None,
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            text("call_id"), text("workspace_id"), integer("due_at"),
        ],
    },
    Table {
        name: "assistant_revisions", owner: "workspace_id", key: &["workspace_id", "id", "revision"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("workspace_id"), text("id"), text("name"), text("instructions"), text("first_message"),
            text("model"), text("voice"), text("pipeline_mode"), text("transcriber"), text("language"),
            text("keyterms"), text("speech"), integer("record"), text("tool_ids"), text("knowledge_ids"),
            integer("revision"), integer("created_at"), integer("updated_at"), integer("keys"),
            text("transfers"), text_or_null("voicemail"), text("metadata"),
        ],
    },
    Table {
        name: "assistants", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), text("name"), text("instructions"), text("first_message"),
            text("model"), text("voice"), text("pipeline_mode"), integer("revision"), integer("created_at"),
            integer("updated_at"), text("transcriber"), text("language"), text("keyterms"), text("speech"),
            integer("record"), integer("keys"), text("transfers"), text_or_null("voicemail"),
            text("metadata"),
        ],
    },
    Table {
        name: "audit_entries", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), text("actor"), text("actor_name"), text("operation"),
            text_or_null("subject"), integer("created_at"), text_or_null("subject_name"),
        ],
    },
    Table {
        name: "call_groups", owner: "workspace_id", key: &["id"], number: Some("id"),
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            integer("id"), text("workspace_id"), text("assistant_id"), text("source"), text("model"),
            text("voice"), text("outcome"), text("sentiment"), integer("is_left"),
        ],
    },
    Table {
        name: "call_inputs", owner: "workspace_id", key: &["call_id", "place", "piece"], number: None,
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            text("workspace_id"), text("call_id"), integer("place"), integer("piece"), text("entries"),
        ],
    },
    Table {
        name: "conversation_journal", owner: "workspace_id", key: &["conversation_id", "place"], number: None,
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            text("workspace_id"), text("conversation_id"), integer("place"), text("entry"),
        ],
    },
    Table {
        name: "deliveries", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), text("webhook_id"), text("event_id"), text("type"),
            integer("body_bytes"), text("status"), integer("attempts"), integer("failures"),
            integer_or_null("due_at"), integer_or_null("last_status"), text_or_null("last_error"),
            text_or_null("last_response"), integer("created_at"), integer_or_null("delivered_at"),
        ],
    },
    Table {
        name: "documents", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), text("name"), text("content"), text("source"),
            integer("size_bytes"), integer("revision"), integer("created_at"), integer("updated_at"),
            text("metadata"),
        ],
    },
    Table {
        name: "event_log", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), text("type"), text("subject_id"), text_or_null("call_id"),
            integer("created_at"),
        ],
    },
    Table {
        name: "events", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), text("type"), text("body"), integer("created_at"),
            text_or_null("call_id"),
        ],
    },
    Table {
        name: "idempotency_keys", owner: "workspace_id", key: &["workspace_id", "key"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("workspace_id"), text("key"), text("fingerprint"), integer("status"), text_or_null("body"),
            integer_or_null("etag"), text_or_null("reveal"), integer("created_at"),
        ],
    },
    Table {
        name: "jobs", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), text("kind"), text("subject_id"), integer("due_at"),
            text_or_null("lease"), integer("attempts"), integer("created_at"),
        ],
    },
    Table {
        name: "jobs_away", owner: "workspace_id", key: &["workspace_id", "id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("workspace_id"), text("id"), text("kind"), text("subject_id"), integer("due_at"),
            integer("attempts"), integer("created_at"),
        ],
    },
    Table {
        name: "live_calls", owner: "workspace_id", key: &["call_id"], number: None,
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            text("call_id"), text("workspace_id"), integer("offset_ms"), text("spent"), integer("changes"),
            text_or_null("link_id"), integer("is_replaced"),
        ],
    },
    Table {
        name: "named_snapshots", owner: "workspace_id", key: &["workspace_id", "hash"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("workspace_id"), text("hash"), text("assistant"), text_or_null("simulation"),
            text_or_null("mode"), integer("created_at"),
        ],
    },
    Table {
        name: "personas", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), text("name"), text("system_prompt"), integer("revision"),
            integer("created_at"), integer("updated_at"), text_or_null("model"), text("metadata"),
        ],
    },
    Table {
        name: "phone_calls", owner: "workspace_id", key: &["call_id"], number: None,
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            text("call_id"), text("workspace_id"), text("assistant_id"), text("provider"),
            text_or_null("carrier_call_id"), text_or_null("region_url"), text("job_id"),
            integer("max_seconds"), text("placed"), integer_or_null("media_at"), integer_or_null("talked_at"),
            integer_or_null("hang_up_at"), text("said"), integer("is_over"), integer("version"),
            integer("created_at"), integer_or_null("delete_at"), text_or_null("transfer"),
            integer_or_null("line_until"), integer_or_null("line_microusd"),
        ],
    },
    Table {
        name: "recordings", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), text("call_id"), text("state"), integer_or_null("due_at"),
            integer("size_bytes"), text("sha256"), integer("duration_ms"), text_or_null("peaks"),
            integer("created_at"), integer_or_null("segments"), integer_or_null("segment_ms"),
            integer_or_null("rate_hz"), integer_or_null("missing_ms"),
        ],
    },
    Table {
        name: "runs", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), text("simulation_id"), text_or_null("batch_id"),
            text("assistant_id"), integer("assistant_revision"), text("assistant_snapshot"),
            text("simulation_snapshot"), text("mode"), integer("seed"), text("status"),
            integer_or_null("passed"), text_or_null("error"), text("evaluations"), text("transcript"),
            integer("created_at"), integer_or_null("started_at"), integer_or_null("completed_at"),
            text_or_null("call_id"), integer("turns"), text_or_null("last_line"), integer("cost_microusd"),
            integer("max_cost_microusd"), text_or_null("failed_evaluation"), text("variables"),
            text("metadata"), text("tools"), text_or_null("snapshot"), text("mocks_unused"),
        ],
    },
    Table {
        name: "scenarios", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), text("name"), text("instructions"), text("evaluations"),
            integer("revision"), integer("created_at"), integer("updated_at"), text_or_null("judge_model"),
            text("conditions"), integer("judge_votes"), text("variables"), text("metadata"),
            text("tool_mocks"),
        ],
    },
    Table {
        name: "search_erasures", owner: "workspace_id", key: &["workspace_id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("workspace_id"), integer("merging"),
        ],
    },
    Table {
        name: "snapshots", owner: "workspace_id", key: &["workspace_id", "id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("workspace_id"), text("id"), text("content"),
        ],
    },
    Table {
        name: "spending", owner: "workspace_id", key: &["workspace_id", "month"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("workspace_id"), text("month"), integer("microusd"),
        ],
    },
    Table {
        name: "spending_reservations", owner: "workspace_id", key: &["workspace_id", "call_id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("workspace_id"), text("call_id"), integer("microusd"), integer("models_microusd"),
        ],
    },
    Table {
        name: "test_token_values", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), integer("expires_at"), text("variables"), text("metadata"),
        ],
    },
    Table {
        name: "tools", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), text("name"), text("url"), text("method"), text("description"),
            text("parameters"), integer("timeout_ms"), integer("secret_version"), integer("revision"),
            integer("created_at"), integer("updated_at"), integer_or_null("old_secret_until"),
            text("metadata"), text_or_null("carried_secrets"),
        ],
    },
    Table {
        name: "used_test_tokens", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), integer("expires_at"), text_or_null("link_id"),
            integer("used_at"),
        ],
    },
    Table {
        name: "webhooks", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), text("url"), text("events"), integer("enabled"),
            integer("secret_version"), integer("revision"), integer("created_at"), integer("updated_at"),
            integer_or_null("old_secret_until"), text("metadata"), text_or_null("carried_secrets"),
        ],
    },
    Table {
        name: "assistant_documents", owner: "workspace_id", key: &["assistant_id", "position"], number: None,
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            text("workspace_id"), text("assistant_id"), text("document_id"), integer("position"),
        ],
    },
    Table {
        name: "assistant_tools", owner: "workspace_id", key: &["assistant_id", "position"], number: None,
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            text("workspace_id"), text("assistant_id"), text("tool_id"), integer("position"),
        ],
    },
    Table {
        name: "call_rollups", owner: "workspace_id", key: &["workspace_id", "group_id", "span_ms", "starts_at"], number: None,
        is_sorted_by_owner: true,
        by_number: &[
            ByNumber { column: "group_id", table: "call_groups", number: "id", owner: "workspace_id", known_by: &["workspace_id", "assistant_id", "source", "model", "voice", "outcome", "sentiment"] },
        ],
        columns: &[
            text("workspace_id"), integer("group_id"), integer("span_ms"), integer("starts_at"),
            integer("calls"), integer("duration_ms"), integer("cost_microusd"),
        ],
    },
    Table {
        name: "calls", owner: "workspace_id", key: &["seq"], number: Some("seq"),
        is_sorted_by_owner: false,
        by_number: &[
            ByNumber { column: "group_id", table: "call_groups", number: "id", owner: "workspace_id", known_by: &["workspace_id", "assistant_id", "source", "model", "voice", "outcome", "sentiment"] },
        ],
        columns: &[
            integer("seq"), text("id"), text("workspace_id"), integer("group_id"),
            integer("assistant_revision"), text("direction"), text("status"), text_or_null("from_number"),
            text_or_null("to_number"), text_or_null("user_number"), text_or_null("provider"),
            text_or_null("carrier_call_id"), integer("started_at"), integer_or_null("answered_at"),
            integer_or_null("ended_at"), integer_or_null("duration_ms"), text_or_null("outcome"),
            text_or_null("ended_reason"), text_or_null("fault"), text_or_null("analysis"),
            integer("cost_microusd"), integer("telephony_microusd"), integer("stt_microusd"),
            integer("llm_microusd"), integer("tts_microusd"), integer("llm_input_tokens"),
            integer("llm_output_tokens"), integer_or_null("recording_ms"), integer("transcript_bytes"),
            text_or_null("simulation_run_id"), integer("llm_uncounted_answers"), text_or_null("waits"),
            text("variables"), text("metadata"), text_or_null("snapshot"),
        ],
    },
    Table {
        name: "live_call_rows", owner: "workspace_id", key: &["call_id", "place"], number: None,
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            text("workspace_id"), text("call_id"), integer("place"), text("content"), integer("change"),
        ],
    },
    Table {
        name: "live_call_turns", owner: "workspace_id", key: &["call_id", "place"], number: None,
        is_sorted_by_owner: false,
        by_number: &[],
        columns: &[
            text("workspace_id"), text("call_id"), integer("place"), text("content"), integer("change"),
        ],
    },
    Table {
        name: "numbers", owner: "workspace_id", key: &["number"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("number"), text("workspace_id"), text("assistant_id"), text("provider"),
            text_or_null("region"), integer("created_at"), integer("updated_at"),
            integer_or_null("last_callback_at"), text("metadata"),
        ],
    },
    Table {
        name: "simulations", owner: "workspace_id", key: &["id"], number: None,
        is_sorted_by_owner: true,
        by_number: &[],
        columns: &[
            text("id"), text("workspace_id"), text("assistant_id"), text("persona_id"), text("scenario_id"),
            text("name"), integer("revision"), integer("created_at"), integer("updated_at"), text("metadata"),
        ],
    },
    Table {
        name: "call_metadata", owner: "workspace_id", key: &["workspace_id", "name", "value", "seq"], number: None,
        is_sorted_by_owner: true,
        by_number: &[
            ByNumber { column: "seq", table: "calls", number: "seq", owner: "workspace_id", known_by: &["id"] },
        ],
        columns: &[
            text("workspace_id"), text("name"), text("value"), integer("seq"),
        ],
    },
    Table {
        name: "call_transcripts", owner: "workspace_id", key: &["seq"], number: None,
        is_sorted_by_owner: false,
        by_number: &[
            ByNumber { column: "seq", table: "calls", number: "seq", owner: "workspace_id", known_by: &["id"] },
        ],
        columns: &[
            integer("seq"), text("workspace_id"), text("content"), text("turns"), integer_or_null("changes"),
            integer_or_null("archive_bytes"), text_or_null("archive_sha256"),
        ],
    },
    Table {
        name: "call_words", owner: "workspace_id", key: &["seq"], number: None,
        is_sorted_by_owner: false,
        by_number: &[
            ByNumber { column: "seq", table: "calls", number: "seq", owner: "workspace_id", known_by: &["id"] },
        ],
        columns: &[
            integer("seq"), text("workspace_id"), text("heads"), text_or_null("carrier"),
            text_or_null("summary"), text_or_null("said"),
        ],
    },
];
