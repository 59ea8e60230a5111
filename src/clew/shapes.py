"""Values of clew as JSON-compatible dictionaries: what ``--json`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.types import (
    Answer,
    Checked,
    Document,
    Entity,
    Exclusion,
    GraphInfo,
    Hit,
    Node,
    Property,
    RankedAnswer,
    Relation,
    Step,
    Usage,
)

if TYPE_CHECKING:
    from clew.link import SameLink


def node_shape(node: Node) -> dict[str, Any]:
    """Return a node: where it lies, what it is, and its text."""
    return {
        "id": node.id,
        "kind": node.kind,
        "document": node.document_name,
        "key": node.document,
        "page": node.page,
        "section": " > ".join(node.headings),
        "name": node.name,
        "text": node.text,
        "span": list(node.span),
        "boxes": [[box.page, box.x0, box.y0, box.x1, box.y1] for box in node.boxes],
    }


def hit_shape(hit: Hit) -> dict[str, Any]:
    """Return a hit: its node, score, and the ids of the nodes by which it was reached."""
    return node_shape(hit.node) | {
        "score": hit.score,
        "path": list(hit.path or (hit.node.id,)),
        "via": list(hit.via),
    }


def usage_shape(usage: Usage) -> dict[str, Any]:
    """Return a usage; ``money`` is null where no price is known."""
    return {
        "calls": usage.calls,
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "seconds": round(usage.seconds, 3),
        "money": usage.money,
    }


def step_shape(step: Step) -> dict[str, Any]:
    """Return a step of a trail. Its hits are given by id and score; evidence carries the texts."""
    return {
        "name": step.name,
        "detail": dict(step.detail),
        "hits": [
            {
                "id": hit.node.id,
                "document": hit.node.document_name,
                "page": hit.node.page,
                "score": hit.score,
                "path": list(hit.path),
                "via": list(hit.via),
            }
            for hit in step.hits
        ],
        "usage": usage_shape(step.usage),
        "seconds": round(step.seconds, 3),
    }


def answer_shape(answer: Answer) -> dict[str, Any]:
    """Return an answer with evidence, quotes and trail; ``stopped`` says which budget ended it, or is null."""
    return {
        "answer": answer.text,
        "abstained": answer.abstained,
        "stopped": answer.stopped or None,
        "reader": answer.reader,
        "recipe": answer.recipe,
        "evidence": [hit_shape(hit) for hit in answer.evidence],
        "quotes": [{"node": q.node, "text": q.text, "span": list(q.span)} for q in answer.quotes],
        "rejected": list(answer.rejected),
        "values": list(answer.values),
        "remembered": list(answer.remembered),
        "ranked": [ranked_shape(one) for one in answer.ranked],
        "trail": [step_shape(step) for step in answer.trail],
        "usage": usage_shape(answer.usage),
    }


def check_shape(check: Checked) -> dict[str, Any]:
    """Return a constraint and how far it is met; ``met`` is null where nothing that is known says so."""
    return {
        "constraint": check.text,
        "met": check.met,
        "evidence": [{"id": hit.node.id, "text": hit.node.text} for hit in check.hits],
    }


def ranked_shape(ranked: RankedAnswer) -> dict[str, Any]:
    """Return an answer of a ranked list: what it meets, what it misses, and the text that it was ranked by."""
    return {
        "name": ranked.name,
        "id": ranked.hit.node.id,
        "graph": ranked.hit.node.document_name,
        "score": ranked.hit.score,
        "by": ranked.by,
        "meets_all": ranked.firm,
        "missed": list(ranked.missed),
        "checks": [check_shape(one) for one in ranked.checks],
        "text": ranked.hit.node.text,
    }


def exclusion_shape(excluded: Exclusion) -> dict[str, Any]:
    """Return why a node is no answer."""
    return {
        "id": excluded.id,
        "name": excluded.name,
        "is_an_answer": excluded.answers,
        "dropped_by": list(excluded.constraints),
        "each_alone": excluded.alone,
        "restricted": excluded.restricted or None,
        "checks": [check_shape(one) for one in excluded.checks],
    }


def document_shape(document: Document) -> dict[str, Any]:
    """Return a document: names, sizes, and the paths where it was found."""
    return {
        "key": document.key,
        "document": document.name,
        "title": document.title,
        "media_type": document.media_type,
        "parser": document.parser,
        "pages": document.pages,
        "nodes": document.nodes,
        "paths": list(document.paths),
    }


def graph_shape(graph: GraphInfo) -> dict[str, Any]:
    """Return an imported or mounted graph: sizes, and what it was made of."""
    return {
        "graph": graph.name,
        "nodes": graph.nodes,
        "edges": graph.edges,
        "digest": graph.digest,
        "url": graph.url or None,
        "sources": [{"path": one.path, "size": one.size, "sha256": one.sha256} for one in graph.sources],
    }


def relation_shape(name: str, relation: Relation) -> dict[str, Any]:
    """Return a relation with its counts and examples."""
    return {
        "relation": name,
        "id": relation.id or name,
        "edges": relation.edges,
        "head_types": dict(relation.head_types),
        "tail_types": dict(relation.tail_types),
        "examples": [list(pair) for pair in relation.examples],
    }


def property_shape(name: str, property: Property, example: str) -> dict[str, Any]:
    """Return a property of nodes with its counts and an example."""
    return {
        "property": name,
        "values": property.values,
        "numbers": property.numbers,
        "types": dict(property.types),
        "example": example,
    }


def entity_shape(entity: Entity) -> dict[str, Any]:
    """Return a node of a graph."""
    return {
        "id": entity.id,
        "type": entity.type,
        "also": list(entity.also),
        "name": entity.name,
        "aliases": list(entity.aliases),
        "text": entity.text,
        "properties": {
            key: list(one) if isinstance(one, tuple) else one for key, one in entity.properties.items()
        },
    }


def link_shape(link: SameLink) -> dict[str, Any]:
    """Return what is the same in two graphs, or the document about a node, with the evidence."""
    return {
        "source": link.source,
        "source_name": link.source_name,
        "target": link.target,
        "target_name": link.target_name,
        "document": link.document,
        "score": link.score,
        "by": list(link.by),
    }
