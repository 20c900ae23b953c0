/** Signed requests to S3. It repeats those that failed for a moment; errors name the object. */
import { OptError } from "@opt/core";
import { AwsV4Signer } from "aws4fetch";
import { platform } from "#platform";
import type { HttpAnswer } from "../platform/platform";
import { sleep } from "../stores/lanes";
import { fail } from "../stores/objects";
import type { Settings } from "./options";
import { tagsIn } from "./xml";

const FIRST_WAIT = 100;
const LONGEST_WAIT = 5_000;

export interface Question {
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Takes the body of the answer. */
  readonly into?: Uint8Array;
  /** Statuses that are an answer and no failure. */
  readonly allowed?: readonly number[];
}

export interface Answer extends HttpAnswer {
  /** Whether an earlier try may have been carried out although no answer came. */
  readonly isAgain: boolean;
}

/** Signs and repeats requests. Its errors contain only the store's name of a failure. */
export class Client {
  readonly bucket: string;
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.bucket = settings.bucket;
    this.#settings = settings;
  }

  name(key: string): string {
    return `s3://${this.bucket}/${key}`;
  }

  /** @throws OptError IO if it goes on failing, MISSING for a bucket that is not there, EACCES for what is forbidden */
  async ask(method: string, key: string, question: Question = {}): Promise<Answer> {
    const { retries, timeout } = this.#settings;
    let problem = "";
    for (let tries = 0; tries <= retries; tries++) {
      if (tries > 0) await sleep(Math.min(FIRST_WAIT * 2 ** (tries - 1), LONGEST_WAIT) * (0.5 + Math.random() / 2));
      const answer = await this.#once(method, key, question, tries > 0).catch((error: Error) => error);
      if (answer instanceof OptError) throw answer;
      if (answer instanceof Error) {
        problem = answer.name === "TimeoutError" ? `no answer within ${timeout} ms` : "the connection failed";
        continue;
      }
      const { status } = answer;
      if ((status >= 200 && status < 300) || question.allowed?.includes(status)) return answer;
      const code = tagsIn(answer.body, "Code")[0] ?? "";
      problem = `status ${status}${/^\w+$/.test(code) ? ` ${code}` : ""}`;
      const passes = status >= 500 || status === 429 || status === 408 || status === 409 || code === "RequestTimeout";
      if (passes && status !== 501) continue;
      throw this.#rejection(method, key, status, code, problem);
    }
    const advice =
      "Older steps are untouched. Try again, or look at the store and the way to it; see retries and timeout.";
    throw new OptError("IO", this.name(key), `${method} must succeed, got ${problem}, ${retries + 1} times.`, advice);
  }

  #rejection(method: string, key: string, status: number, code: string, problem: string): Error {
    const where = this.name(key);
    if (code === "NoSuchBucket")
      return new OptError("MISSING", where, "the bucket must exist, the store knows none of this name.", "Create it.");
    if (status === 404) return fail("ENOENT", `${where} is not there`);
    if (status === 401 || status === 403) return fail("EACCES", `the store forbids ${method} of ${where} (${problem})`);
    return new OptError("IO", where, `${method} must succeed, got ${problem}.`, "Look at the store's documentation.");
  }

  async #once(method: string, key: string, { query = {}, headers = {}, body, into }: Question, isAgain: boolean) {
    const { root, region, timeout, credentials } = this.#settings;
    const url = new URL(root);
    const path = [this.bucket, ...key.split("/")].map(encodeKey).join("/");
    url.pathname = `${url.pathname.replace(/\/$/, "")}/${path}`.replace(/\/$/, "");
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    // The hash of the body is signed too, so the store rejects a changed body.
    const digest = await platform.sha256Of(body ?? new Uint8Array(0));
    const asked: Record<string, string> = { ...headers, "x-amz-content-sha256": digest };
    const given = typeof credentials === "function" ? await credentials() : credentials;
    const request = { method, ...(body && { body }), ...(into && { into }), signal: AbortSignal.timeout(timeout) };
    if (given === "anonymous") return { ...(await platform.request(url, { ...request, headers: asked })), isAgain };
    const signer = new AwsV4Signer({ ...given, method, url: `${url}`, headers: asked, service: "s3", region });
    const signed = await signer.sign();
    return {
      ...(await platform.request(signed.url, { ...request, headers: Object.fromEntries(signed.headers) })),
      isAgain,
    };
  }
}

/** What S3 wants encoded beyond what encodeURIComponent does. */
function encodeKey(part: string): string {
  return encodeURIComponent(part).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}
