CREATE INDEX "api_keys_limited" ON "api_keys" USING btree ("monthly_limit_micros") WHERE "api_keys"."monthly_limit_micros" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "trail_action" ON "trail_entries" USING btree ("organization_id","action","id");--> statement-breakpoint
CREATE INDEX "organizations_created" ON "organizations" USING btree ("created_at_ms","id");--> statement-breakpoint
CREATE INDEX "organizations_paid" ON "organizations" USING btree ("paid_micros") WHERE "organizations"."paid_micros" > 0;--> statement-breakpoint
CREATE INDEX "payment_events_outcome" ON "payment_events" USING btree ("outcome","received_at_ms");--> statement-breakpoint
CREATE INDEX "payment_events_organization" ON "payment_events" USING btree ("organization_id");--> statement-breakpoint
CREATE INDEX "projects_organization" ON "projects" USING btree ("organization_id");