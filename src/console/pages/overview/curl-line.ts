/** A question about a record, as a command that asks the service at an address with the reader's own key. */
export function curlLine(origin: string): string {
  return `TDS_API_KEY='your key'
curl -s ${origin}/v1/decisions \\
  -H "Authorization: Bearer $TDS_API_KEY" -H 'Content-Type: application/json' -d '{
    "model": "decision-1",
    "state": "I was charged twice for order 8812. Please give the second payment back.",
    "questions": {
      "refund": { "type": "noul", "instructions": "Does the customer ask for money back?" }
    }
  }'`;
}
