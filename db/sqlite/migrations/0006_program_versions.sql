CREATE TABLE `program_versions` (
	`version` text PRIMARY KEY NOT NULL,
	`first_ms` integer NOT NULL,
	`last_ms` integer NOT NULL
) STRICT;
