UPDATE assistants SET voicemail = '{"action":"leave_message","message":"Call us back."}' WHERE id = 'asst_~02';
