"""Ask a running server with OpenAI's client: an answer with citations, vectors, and texts in order.

clew serve --kb FOLDER          in another terminal
python examples/openai_client.py [http://127.0.0.1:8321] [QUESTION]
"""

import json
import sys
from urllib.request import Request, urlopen

import openai

ADDRESS, QUESTION = "http://127.0.0.1:8321", "What does the hirer pay a day if the lighter is returned late?"

if __name__ == "__main__":
    address, question = [*sys.argv[1:], *(ADDRESS, QUESTION)[len(sys.argv) - 1 :]]
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none") as client:
        reply = client.responses.create(model="clew", input=question)
        print(reply.output_text)
        citations = (reply.model_extra or {})["clew"]["citations"]
        for citation in citations:
            print(f"[{citation['number']}] {citation['place']}")
        texts = [quote["text"] for citation in citations for quote in citation["quotes"]] or [question]
        vectors = client.embeddings.create(model="clew", input=texts).data
        print(f"{len(vectors)} vectors of {len(vectors[0].embedding)} numbers")
    body = json.dumps({"model": "clew", "query": question, "documents": texts}).encode()
    request = Request(f"{address}/v1/rerank", body, {"Content-Type": "application/json"})
    with urlopen(request) as response:
        print([(item["index"], round(item["relevance_score"], 2)) for item in json.load(response)["results"]])
