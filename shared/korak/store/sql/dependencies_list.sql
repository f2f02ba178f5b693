-- A page of the waits for other runs, in order, from behind a place: the net under what was told when it happened.
select d.wait_id, d.place from workflow_dependencies d
where (d.wait_id, d.place) > (:wait::bigint, :place::integer)
order by d.wait_id, d.place limit :count::integer
