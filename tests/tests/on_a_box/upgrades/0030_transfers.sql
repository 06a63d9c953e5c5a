UPDATE assistants SET transfers = '[{"name":"Sales","number":"+14155550199","when":"They want to buy."}]' WHERE id = 'asst_~02';
UPDATE phone_calls SET transfer = 'rejected' WHERE call_id = 'call_~02';
