UPDATE call_transcripts SET changes = 3 WHERE seq = 4;
