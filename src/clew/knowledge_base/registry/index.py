"""Which module declares which component: a component is imported when it is used, and no other.

The order is that of ``clew recipes``. A test compares this table with the declarations themselves.
"""

from __future__ import annotations

from collections.abc import Mapping

#: By kind and name, the class: ``module:name``, as entry points write it.
BUILT_IN: Mapping[str, Mapping[str, str]] = {
    "recipe": {
        "kgp": "clew.methods.kgp.method:KGP",
        "kgp-paper": "clew.methods.kgp.method:KGP",
        "read": "clew.methods.baselines.plain:RetrieveAndRead",
        "dpr": "clew.methods.baselines.plain:RetrieveAndRead",
        "mdr": "clew.methods.baselines.plain:RetrieveAndRead",
        "none": "clew.methods.baselines.plain:Direct",
        "golden": "clew.methods.baselines.plain:Golden",
        "ircot": "clew.methods.baselines.ircot:IRCoT",
        "selfask": "clew.methods.baselines.selfask:SelfAsk",
        "chain": "clew.methods.chain.method:ChainMethod",
        "focus": "clew.methods.focus.method:FocusMethod",
        "fewshot": "clew.methods.baselines.fewshot:FewShot",
        "cot": "clew.methods.baselines.cot:ChainOfThought",
        "iterretgen": "clew.methods.baselines.iterretgen:IterRetGen",
        "react": "clew.methods.baselines.react:ReAct",
        "dsp": "clew.methods.baselines.dsp:DSP",
    },
    "retriever": {
        "search": "clew.retrieve.contextual:ContextualSearch",
        "bm25": "clew.retrieve.lexical:BM25",
        "tfidf": "clew.retrieve.lexical:TfIdf",
        "dense": "clew.retrieve.dense:DenseSearch",
        "twohop": "clew.retrieve.twohop:TwoHopSearch",
        "knn": "clew.retrieve.knn:KnnSearch",
        "hybrid": "clew.retrieve.hybrid:HybridSearch",
        "serpapi": "clew.retrieve.web:SerpApi",
        "kgp": "clew.methods.kgp.method:KGP",
        "kgp-paper": "clew.methods.kgp.method:KGP",
        "monot5": "clew.methods.d3.baselines:MonoT5Baseline",
        "cross-encoder": "clew.methods.d3.baselines:CrossEncoderBaseline",
        "paragraph": "clew.methods.d3.baselines:ParagraphBaseline",
        "chunk": "clew.methods.d3.baselines:ChunkBaseline",
        "map-reduce": "clew.methods.d3.baselines:ParagraphBaseline",
        "map-reduce-optimised": "clew.methods.d3.baselines:ChunkBaseline",
        "drill": "clew.methods.d3.method:Drill",
        "drill-paper": "clew.methods.d3.method:Drill",
        "vss": "clew.retrieve.nodes:NodeVectorRetriever",
        "multi-vss": "clew.retrieve.nodes:NodeChunkRetriever",
        "bm25-nodes": "clew.retrieve.nodes:NodeWordRetriever",
        "reranked": "clew.retrieve.reranking:RerankedSearch",
    },
    "graph": {
        "keywords": "clew.graph.keywords:KeywordGraph",
        "mentions": "clew.graph.mentions:MentionGraph",
        "knn": "clew.graph.nearest:NearestGraph",
        "structure": "clew.graph.structure:StructureGraph",
        "entities": "clew.graph.entities:EntityGraph",
        "union": "clew.graph.union:UnionGraph",
    },
    "reader": {
        "extractive": "clew.methods.readers.extractive:ExtractiveReader",
        "cited": "clew.methods.readers.cited:CitedReader",
        "paper": "clew.methods.readers.paper:PaperReader",
        "short": "clew.methods.readers.short:ShortReader",
        "hops": "clew.methods.readers.hops:HopReader",
    },
}
