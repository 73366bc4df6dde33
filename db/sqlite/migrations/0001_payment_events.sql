CREATE TABLE `payment_events` (
	`provider` text NOT NULL,
	`event_id` text NOT NULL,
	`type` text NOT NULL,
	`kind` text NOT NULL,
	`occurred_at_ms` integer,
	`external_id` text,
	`payment_external_id` text,
	`payment_id` text,
	`organization_id` text,
	`amount_micros` integer,
	`outcome` text NOT NULL,
	`reason` text,
	`received_at_ms` integer NOT NULL,
	`decided_at_ms` integer NOT NULL,
	PRIMARY KEY(`provider`, `event_id`),
	CONSTRAINT "payment_events_kind" CHECK("payment_events"."kind" IN ('completed', 'canceled', 'refunded', 'refund_reversed', 'irrelevant', 'unreadable')),
	CONSTRAINT "payment_events_outcome" CHECK("payment_events"."outcome" IN ('applied', 'waiting', 'known', 'irrelevant', 'unresolved', 'assigned', 'dismissed'))
) STRICT;
--> statement-breakpoint
CREATE INDEX `payment_events_payment` ON `payment_events` (`provider`,`payment_external_id`);--> statement-breakpoint
CREATE INDEX `payment_events_received` ON `payment_events` (`received_at_ms`);--> statement-breakpoint
UPDATE `organizations` SET `first_paid_at_ms` = NULL WHERE `paid_micros` = 0;
