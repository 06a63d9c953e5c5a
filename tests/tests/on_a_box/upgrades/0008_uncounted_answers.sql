UPDATE calls SET llm_uncounted_answers = 2 WHERE id = 'call_~02';
