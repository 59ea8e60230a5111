WITH asked_question AS (
    SELECT id, asked, state, title, pinned, problem, coalesce(thread, id) AS thread,
        coalesce(json_extract(asking, '$.question'), '') AS question, json_extract(asking, '$.chain') AS chain,
        json_extract(asking, '$.documents') AS documents, json_extract(asking, '$.graphs') AS graphs,
        json_extract(answer, '$.answer') AS text
    FROM question
), keyed AS (
    SELECT *, CASE WHEN count(*) OVER (PARTITION BY thread) > 1 THEN thread
        ELSE lower(trim(question)) || char(10) || coalesce(chain, '') || char(10) || coalesce(documents, '')
            || char(10) || coalesce(graphs, '') END AS key
    FROM asked_question
), line AS (
    SELECT id, asked, state, problem, text, thread, key,
        max(title) OVER conversation AS title, max(coalesce(pinned, 0)) OVER conversation AS pinned,
        count(id) OVER conversation AS size,
        first_value(question) OVER (PARTITION BY key ORDER BY asked, id) AS question,
        first_value(chain) OVER (PARTITION BY key ORDER BY asked, id) AS chain,
        max(instr(lower(coalesce(title, '') || ' ' || question || ' ' || coalesce(text, '')), lower(:words)))
            OVER conversation AS wanted,
        row_number() OVER (PARTITION BY key ORDER BY asked DESC, id) AS place
    FROM keyed WINDOW conversation AS (PARTITION BY key)
)
