"""The chat endpoint for clients of OpenAI."""
