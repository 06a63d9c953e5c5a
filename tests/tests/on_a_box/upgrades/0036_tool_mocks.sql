UPDATE scenarios SET tool_mocks = '{"look_up":[{"when":{"day":"Monday"},"error":"closed"},{"result":{"free":true},"delay_ms":500}]}'
  WHERE id = 'scen_~02';
UPDATE runs SET tools = 'mock' WHERE id = 'run_~03';
