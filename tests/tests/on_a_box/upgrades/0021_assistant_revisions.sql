INSERT INTO assistant_revisions (workspace_id, id, name, instructions, first_message, model, voice, pipeline_mode, transcriber, language,
  keyterms, speech, record, tool_ids, knowledge_ids, revision, created_at, updated_at) VALUES
  ('ws_~01', 'asst_~01', 'Counter', 'Be kind.', 'Hello.', 'builtin/rules', 'builtin/tone', 'cascading', '', '', '[]', '{}', 1,
   '["tool_~01"]', '[]', 2, 1700000000000, 1700000000000);
