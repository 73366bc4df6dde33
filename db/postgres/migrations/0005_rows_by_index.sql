DROP INDEX "alert_recipients_due";--> statement-breakpoint
DROP INDEX "api_keys_project";--> statement-breakpoint
CREATE INDEX "api_keys_limited" ON "api_keys" USING btree ("monthly_limit_micros") WHERE "api_keys"."monthly_limit_micros" IS NOT NULL AND "api_keys"."revoked_at_ms" IS NULL;--> statement-breakpoint
CREATE INDEX "api_keys_rotated" ON "api_keys" USING btree ("first_key_id") WHERE "api_keys"."first_key_id" IS NOT NULL AND "api_keys"."revoked_at_ms" IS NULL;--> statement-breakpoint
CREATE INDEX "trail_action" ON "trail_entries" USING btree ("organization_id","action","id");--> statement-breakpoint
CREATE INDEX "organizations_created" ON "organizations" USING btree ("created_at_ms","id");--> statement-breakpoint
CREATE INDEX "organizations_paid" ON "organizations" USING btree ("paid_micros") WHERE "organizations"."paid_micros" > 0;--> statement-breakpoint
CREATE INDEX "payment_events_outcome" ON "payment_events" USING btree ("outcome","received_at_ms");--> statement-breakpoint
CREATE INDEX "payment_events_organization" ON "payment_events" USING btree ("organization_id","received_at_ms");--> statement-breakpoint
CREATE INDEX "payments_pending" ON "payments" USING btree ("provider","created_at_ms") WHERE "payments"."status" = 'pending';--> statement-breakpoint
CREATE INDEX "projects_organization" ON "projects" USING btree ("organization_id");--> statement-breakpoint
CREATE INDEX "alert_recipients_due" ON "alert_recipients" USING btree ("mail_due_ms","alert_id") WHERE "alert_recipients"."mail_due_ms" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "api_keys_project" ON "api_keys" USING btree ("project_id","revoked_at_ms","id");