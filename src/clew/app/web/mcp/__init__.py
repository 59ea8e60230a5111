"""The server of the Model Context Protocol: tools by which an AI assistant uses a knowledge base."""
