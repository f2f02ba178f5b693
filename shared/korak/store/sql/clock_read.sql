-- The server's time: the one place that asks for it.
select clock_timestamp() as now
