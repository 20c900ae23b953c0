/** Options in what TF.js writes beside a model. When it reads that, it puts strings and keys into camel case, but for a string under "name". */
import type { serialization } from "@tensorflow/tfjs-core";

type Config = serialization.ConfigDict;
type Value = serialization.ConfigDictValue;

/** Functions (a penalty chosen by name) are the program's and are left out. */
export function toConfig(options: object): Config {
  return Object.fromEntries(
    Object.entries(options).flatMap(([key, value]) =>
      value === undefined || typeof value === "function" ? [] : [[key, isTouched(value) ? { name: value } : value]],
    ),
  );
}

export function fromConfig(config: Config): Record<string, unknown> {
  return Object.fromEntries(Object.entries(config).map(([key, value]) => [key, namedString(value) ?? value]));
}

const isTouched = (value: unknown): value is string => typeof value === "string" && value.includes("_");

function namedString(value: Value): string | undefined {
  const { name, ...others } = Object(value) as { name?: unknown };
  return typeof name === "string" && Object.keys(others).length === 0 ? name : undefined;
}
