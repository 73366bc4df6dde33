-- The rows of the empty key become those of whole projects. They were those of requests that named no key.
INSERT INTO `project_months` (`project_id`, `month`, `api_key_id`, `spent_micros`, `held_micros`)
SELECT `project_id`, `month`, '', sum(`spent_micros`), sum(`held_micros`) FROM `project_months`
GROUP BY `project_id`, `month`
ON CONFLICT (`project_id`, `month`, `api_key_id`)
DO UPDATE SET `spent_micros` = excluded.`spent_micros`, `held_micros` = excluded.`held_micros`;