/** What an option says goes before the environment, and of that S3's own names before those of all services. */
import fc from "fast-check";
import { afterEach, expect, it, vi } from "vitest";
import { type S3Options, settingsOf } from "./options";

afterEach(() => vi.unstubAllEnvs());

const KEY = { accessKeyId: "a", secretAccessKey: "b" };
const url = (name: string) => `https://${name}.test/`;
const ENV = {
  ...{ AWS_REGION: "r1", AWS_DEFAULT_REGION: "r2", AWS_ENDPOINT_URL_S3: url("s3"), AWS_ENDPOINT_URL: url("all") },
  ...{ AWS_ACCESS_KEY_ID: "i", AWS_SECRET_ACCESS_KEY: "s", AWS_SESSION_TOKEN: "t" },
};
const OPTIONS = { region: "r0", endpoint: url("own"), credentials: KEY, retries: 0, timeout: 7 };

it("in every combination", () => {
  const drawn = fc.record({ env: fc.subarray(Object.keys(ENV)), given: fc.subarray(Object.keys(OPTIONS)) });
  fc.assert(
    fc.property(drawn, ({ env, given }) => {
      for (const [name, value] of Object.entries(ENV)) vi.stubEnv(name, env.includes(name) ? value : undefined);
      const options = Object.fromEntries(Object.entries(OPTIONS).filter(([name]) => given.includes(name)));
      const told = (name: keyof typeof OPTIONS, ...names: (keyof typeof ENV)[]): unknown =>
        options[name] ?? names.flatMap((each) => (env.includes(each) ? [ENV[each]] : []))[0];
      const hasKey = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].every((name) => env.includes(name));
      const token = env.includes("AWS_SESSION_TOKEN") ? { sessionToken: "t" } : {};
      const credentials =
        options.credentials ?? (hasKey ? { accessKeyId: "i", secretAccessKey: "s", ...token } : undefined);
      const settings = () => settingsOf({ bucket: "bucket", ...options } as S3Options);
      if (credentials === undefined) return void expect(settings).toThrow("must have credentials");
      const region = told("region", "AWS_REGION", "AWS_DEFAULT_REGION") ?? "us-east-1";
      const endpoint =
        told("endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") ?? `https://s3.${region}.amazonaws.com/`;
      const { root, ...others } = settings();
      const [retries, timeout] = [told("retries") ?? 5, told("timeout") ?? 60_000];
      expect({ ...others, root: root.href }).toEqual({
        bucket: "bucket",
        region,
        credentials,
        retries,
        timeout,
        root: endpoint,
      });
    }),
    { seed: 1, numRuns: 200 },
  );
});
