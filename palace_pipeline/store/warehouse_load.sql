-- Rows of a few month files of the lake (of some conversations only, in an incremental publish), staged without text.

-- Where a message lies: in the drawer of the talk around it rather than in one of tools or thinking, then in the first.
CREATE OR REPLACE TEMP TABLE placed AS
SELECT provider, conversation_id, seq, arg_min({'wing': wing, 'room': room}, (aside, chunk_index)) AS place
FROM (
    SELECT provider, conversation_id, unnest(range(first_seq, last_seq + 1)) AS seq, wing, room, chunk_index,
        kind IN ('tool', 'thinking') AS aside
    FROM read_parquet($drawers)
)
GROUP BY ALL;

CREATE OR REPLACE TEMP TABLE loaded_messages AS
SELECT m.*, coalesce(f.findings, 0) AS findings, placed.place.wing AS wing, placed.place.room AS room,
    m.visible AND o.seq IS NOT NULL AS opening
FROM read_parquet($messages) AS m
LEFT JOIN (
    SELECT provider, conversation_id, seq, count(*) AS findings FROM read_parquet($findings) GROUP BY ALL
) AS f USING (provider, conversation_id, seq)
LEFT JOIN placed USING (provider, conversation_id, seq)
LEFT JOIN (
    SELECT provider, conversation_id, arg_min(seq, (local_at IS NULL, local_at, seq)) AS seq
    FROM read_parquet($messages) WHERE visible GROUP BY ALL
) AS o USING (provider, conversation_id, seq);

INSERT INTO messages BY NAME SELECT * FROM loaded_messages;

INSERT INTO drawers BY NAME SELECT * FROM read_parquet($drawers);

INSERT INTO findings BY NAME SELECT * FROM read_parquet($findings);

INSERT INTO conversations BY NAME
WITH counted AS (
    SELECT provider, conversation_id,
        min(created_at) FILTER (visible) AS started_at,
        max(created_at) FILTER (visible) AS ended_at,
        min(local_at) FILTER (visible) AS local_started,
        max(local_at) FILTER (visible) AS local_ended,
        count(*) FILTER (visible) AS message_count,
        count(*) FILTER (visible AND role = 'user') AS user_messages,
        count(*) FILTER (visible AND role = 'assistant') AS assistant_messages,
        count(*) FILTER (visible AND role = 'bot') AS bot_messages,
        coalesce(sum(words) FILTER (visible), 0) AS words,
        sum(tokens_in) AS tokens_in,
        sum(tokens_out) AS tokens_out,
        sum(tokens_cached) AS tokens_cached,
        sum(cost) AS cost,
        count(*) AS rows
    FROM loaded_messages GROUP BY ALL
), models AS (
    SELECT provider, conversation_id, first(model ORDER BY n DESC, model) AS model
    FROM (SELECT provider, conversation_id, model, count(*) AS n FROM loaded_messages WHERE model <> '' GROUP BY ALL)
    GROUP BY ALL
), wings AS (
    SELECT provider, conversation_id, first(wing ORDER BY n DESC, wing) AS wing, sum(n) AS drawers
    FROM (SELECT provider, conversation_id, wing, count(*) AS n FROM read_parquet($drawers) GROUP BY ALL)
    GROUP BY ALL
), rooms AS (
    SELECT provider, conversation_id, first(room ORDER BY n DESC, room) AS room
    FROM (SELECT provider, conversation_id, room, count(*) AS n FROM read_parquet($drawers) GROUP BY ALL)
    GROUP BY ALL
), found AS (
    SELECT provider, conversation_id, count(*) AS findings FROM read_parquet($findings) GROUP BY ALL
)
SELECT c.* EXCLUDE (model), coalesce(c.model, models.model) AS model,
    started_at, ended_at, local_started, local_ended,
    coalesce(message_count, 0) AS message_count, coalesce(user_messages, 0) AS user_messages,
    coalesce(assistant_messages, 0) AS assistant_messages, coalesce(bot_messages, 0) AS bot_messages,
    coalesce(words, 0) AS words, tokens_in, tokens_out, tokens_cached, cost, coalesce(rows, 0) AS rows,
    wing, room, coalesce(drawers, 0) AS drawers, coalesce(findings, 0) AS findings
FROM read_parquet($conversations) AS c
LEFT JOIN counted USING (provider, conversation_id)
LEFT JOIN models USING (provider, conversation_id)
LEFT JOIN wings USING (provider, conversation_id)
LEFT JOIN rooms USING (provider, conversation_id)
LEFT JOIN found USING (provider, conversation_id)
