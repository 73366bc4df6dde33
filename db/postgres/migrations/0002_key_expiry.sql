ALTER TABLE "api_keys" ADD COLUMN "expires_at_ms" bigint;--> statement-breakpoint
CREATE INDEX "api_keys_expiry" ON "api_keys" USING btree ("expires_at_ms") WHERE "api_keys"."revoked_at_ms" IS NULL;