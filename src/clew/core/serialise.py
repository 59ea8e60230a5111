"""Values of clew as JSON-compatible dictionaries: what ``--json`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.core.types import (
    Answer,
    ConstraintCheck,
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
    from clew.triples.linking.entity_alignment import EntityAlignment


def node_to_dict(node: Node) -> dict[str, Any]:
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


def hit_to_dict(hit: Hit) -> dict[str, Any]:
    """Return a hit: its node, score, and the ids of the nodes by which it was reached."""
    return node_to_dict(hit.node) | {
        "score": hit.score,
        "path": list(hit.path or (hit.node.id,)),
        "via": list(hit.via),
    }


def usage_to_dict(usage: Usage) -> dict[str, Any]:
    """Return a usage; ``money`` is null where no price is known."""
    return {
        "calls": usage.calls,
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "seconds": round(usage.seconds, 3),
        "money": usage.money,
    }


def step_to_dict(step: Step) -> dict[str, Any]:
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
        "usage": usage_to_dict(step.usage),
        "seconds": round(step.seconds, 3),
    }


def answer_to_dict(answer: Answer) -> dict[str, Any]:
    """Return an answer with evidence, quotes and trail; ``stopped`` says which budget ended it, or is null."""
    return {
        "answer": answer.text,
        "abstained": answer.abstained,
        "stopped": answer.stop_reason or None,
        "reader": answer.reader,
        "recipe": answer.recipe,
        "evidence": [hit_to_dict(hit) for hit in answer.evidence],
        "quotes": [{"node": q.node, "text": q.text, "span": list(q.span)} for q in answer.quotes],
        "rejected": list(answer.rejected_quotes),
        "values": list(answer.values),
        "remembered": list(answer.from_memory),
        "ranked": [ranked_to_dict(one) for one in answer.ranking],
        "trail": [step_to_dict(step) for step in answer.trail],
        "usage": usage_to_dict(answer.usage),
    }


def check_to_dict(check: ConstraintCheck) -> dict[str, Any]:
    """Return a constraint and how far it is met; ``met`` is null where nothing that is known says so."""
    return {
        "constraint": check.text,
        "met": check.satisfaction,
        "evidence": [{"id": hit.node.id, "text": hit.node.text} for hit in check.hits],
    }


def ranked_to_dict(ranked: RankedAnswer) -> dict[str, Any]:
    """Return an answer of a ranked list: what it meets, what it misses, and the text that it was ranked by."""
    return {
        "name": ranked.name,
        "id": ranked.hit.node.id,
        "graph": ranked.hit.node.document_name,
        "score": ranked.hit.score,
        "by": ranked.ranked_by,
        "meets_all": ranked.meets_all,
        "missed": list(ranked.missed_constraints),
        "checks": [check_to_dict(one) for one in ranked.checks],
        "text": ranked.hit.node.text,
    }


def exclusion_to_dict(excluded: Exclusion) -> dict[str, Any]:
    """Return why a node is no answer."""
    return {
        "id": excluded.id,
        "name": excluded.name,
        "is_an_answer": excluded.is_answer,
        "dropped_by": list(excluded.constraints),
        "each_alone": excluded.each_alone,
        "restricted": excluded.restriction or None,
        "checks": [check_to_dict(one) for one in excluded.checks],
    }


def document_to_dict(document: Document) -> dict[str, Any]:
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


def graph_to_dict(graph: GraphInfo) -> dict[str, Any]:
    """Return an imported or mounted graph: sizes, and what it was made of."""
    return {
        "graph": graph.name,
        "nodes": graph.nodes,
        "edges": graph.edges,
        "digest": graph.digest,
        "url": graph.url or None,
        "sources": [{"path": one.path, "size": one.size, "sha256": one.sha256} for one in graph.sources],
    }


def relation_to_dict(name: str, relation: Relation) -> dict[str, Any]:
    """Return a relation with its counts and examples."""
    return {
        "relation": name,
        "id": relation.id or name,
        "edges": relation.edges,
        "head_types": dict(relation.head_types),
        "tail_types": dict(relation.tail_types),
        "examples": [list(pair) for pair in relation.examples],
    }


def property_to_dict(name: str, property: Property, example: str) -> dict[str, Any]:
    """Return a property of nodes with its counts and an example."""
    return {
        "property": name,
        "values": property.values,
        "numbers": property.numbers,
        "types": dict(property.types),
        "example": example,
    }


def entity_to_dict(entity: Entity) -> dict[str, Any]:
    """Return a node of a graph."""
    return {
        "id": entity.id,
        "type": entity.type,
        "also": list(entity.more_types),
        "name": entity.name,
        "aliases": list(entity.aliases),
        "text": entity.text,
        "properties": {
            key: list(one) if isinstance(one, tuple) else one for key, one in entity.properties.items()
        },
    }


def link_to_dict(link: EntityAlignment) -> dict[str, Any]:
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
