CREATE INDEX `members_user` ON `members` (`user_id`);--> statement-breakpoint
CREATE INDEX `payments_refunds` ON `payments` (`refunds_payment_id`) WHERE "payments"."refunds_payment_id" IS NOT NULL;