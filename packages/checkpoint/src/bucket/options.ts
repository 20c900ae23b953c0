/** Options of `s3FileSystem`, with defaults from the environment. */
import { check, checkOptions } from "@opt/core";

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface S3Options {
  readonly bucket: string;
  /** Without it AWS_REGION, else us-east-1. */
  readonly region?: string;
  /** The server, where it is not AWS's; without it AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL. The bucket is the first part of its paths. */
  readonly endpoint?: string;
  /** A function is called for each request, and may give new ones when the old expire. Without it AWS_ACCESS_KEY_ID and the like. */
  readonly credentials?: S3Credentials | (() => S3Credentials | Promise<S3Credentials>) | "anonymous";
  /** How often to repeat a request that failed for a moment, after 0.1 s, 0.2 s and so on. Default 5. */
  readonly retries?: number;
  /** Milliseconds until a request counts as failed; 60,000 without it. */
  readonly timeout?: number;
}

/** With what the environment says. */
export type Settings = Required<Omit<S3Options, "endpoint">> & { readonly root: URL };

const WHERE = "s3FileSystem";

/** @throws OptError BAD_ARGUMENT */
export function settingsOf(options: S3Options): Settings {
  checkOptions(WHERE, options, {
    bucket: "string",
    region: "string",
    endpoint: "string",
    credentials: "any",
    retries: "number",
    timeout: "number",
  });
  const env: Readonly<Record<string, string | undefined>> = globalThis.process?.env ?? {};
  const { bucket, retries = 5, timeout = 60_000 } = options;
  const isBucket = typeof bucket === "string" && /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket);
  check(
    isBucket,
    "BAD_ARGUMENT",
    WHERE,
    () => `bucket must be a bucket's name, got ${JSON.stringify(bucket)}.`,
    "3 to 63 of a-z, 0-9, - and dots; the folder inside of it is the path.",
  );
  const region = options.region ?? env.AWS_REGION ?? env.AWS_DEFAULT_REGION ?? "us-east-1";
  const endpoint = options.endpoint ?? env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL;
  const address = endpoint ?? `https://s3.${region}.amazonaws.com`;
  const isAddress = URL.canParse(address) && /^https?:$/.test(new URL(address).protocol);
  check(
    isAddress,
    "BAD_ARGUMENT",
    WHERE,
    () => "endpoint must be an http(s) URL.",
    "For example https://minio.example.org.",
  );
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN: token } = env;
  const fromEnv = accessKeyId !== undefined && secretAccessKey !== undefined;
  const credentials =
    options.credentials ??
    (fromEnv ? { accessKeyId, secretAccessKey, ...(token === undefined ? {} : { sessionToken: token }) } : undefined);
  check(
    credentials !== undefined,
    "BAD_ARGUMENT",
    WHERE,
    () => "must have credentials, got undefined.",
    'Give { accessKeyId, secretAccessKey }, set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or say "anonymous".',
  );
  return { bucket, region, root: new URL(address), credentials, retries, timeout };
}
