-- What answers in place of a scenario's tools, and whether a run was started with it. Earlier runs called the tools.
ALTER TABLE scenarios ADD COLUMN tool_mocks TEXT NOT NULL DEFAULT '{}';
ALTER TABLE runs ADD COLUMN tools TEXT NOT NULL DEFAULT 'live';
