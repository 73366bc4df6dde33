/**
 * The header with the tokens in the middle of the record that a question did not see. An addition to the
 * specification. A service that asks another one passes it on.
 */
export const LEFT_OUT_HEADER = 'tds-record-tokens-left-out';
