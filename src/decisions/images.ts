import type { Refusal } from '../errors/errors.ts';
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { DecisionRefusal } from './refusal.ts';

/** The clients' names for the type of an image part. */
const IMAGE_TYPES: readonly JsonValue[] = ['image', 'image_url', 'input_image'];

/** The fields of an image part with the image or its address. */
const IMAGE_FIELDS = [
  'image',
  'image_url',
  'source',
  'data',
  'data_base64',
  'base64',
  'url',
  'file_id',
  'part',
];

/** The clients' names for the media type of a file part. */
const MEDIA_TYPE_FIELDS = ['mediaType', 'media_type', 'mimeType', 'mime_type'];

/**
 * Returns the refusal for a request with images (contract: the model rejects it, 400 or 422), with the field
 * that has them.
 */
export function readsTextOnly(param: string | null): Refusal<'invalid_request'> {
  return new DecisionRefusal('invalid_request', {
    status: 400,
    message: 'This model reads text only: send JSON without images.',
    ...(param === null ? {} : { param }),
  });
}

/**
 * Returns the refusal for a body that has images, or null. An answer without them would charge for a
 * different question. Images are the `assets` of the open decision-request format, and parts of a list, as in
 * messages. An object that merely has a field named `image`, or describes one, is a record.
 */
export function imageRefusal(body: JsonObject<JsonValue>): Refusal<'invalid_request'> | null {
  if (hasEntries(body.get('assets'))) return readsTextOnly('assets');
  if (hasImagePart(body.get('state'))) return readsTextOnly('state');
  const questions = body.get('questions');
  if (!isJsonObject(questions)) return null;
  const index = questions.values.findIndex(
    (question) => isJsonObject(question) && hasImagePart(question.get('instructions')),
  );
  return index < 0 ? null : readsTextOnly(`questions.${questions.names[index]}.instructions`);
}

/** Returns true for an object or a list that is not empty. */
function hasEntries(value: JsonValue | undefined): boolean {
  if (isJsonObject(value)) return value.names.length > 0;
  return isJsonArray(value) && value.length > 0;
}

/** Returns true if a list has an image among its parts, or among those of its messages. */
function hasImagePart(value: JsonValue | undefined): boolean {
  if (isJsonObject(value)) return hasImagePart(value.get('content')) || hasImagePart(value.get('messages'));
  return (
    isJsonArray(value) &&
    value.some((part) => isJsonObject(part) && (isImage(part) || hasImagePart(part.get('content'))))
  );
}

function isImage(part: JsonObject<JsonValue>): boolean {
  const type = part.get('type');
  if (type === undefined) return false;
  const has_data = IMAGE_FIELDS.some((name) => (part.get(name) ?? null) !== null);
  return has_data && (IMAGE_TYPES.includes(type) || (type === 'file' && isOfImageType(part)));
}

function isOfImageType(part: JsonObject<JsonValue>): boolean {
  return MEDIA_TYPE_FIELDS.some((name) => {
    const media_type = part.get(name);
    return typeof media_type === 'string' && media_type.startsWith('image/');
  });
}
