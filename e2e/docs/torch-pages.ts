/** What of PyTorch exists here: the table of ops in the migration guide and the page of features, from definitions and exports. */
import * as core from "@opt/core";
import * as distributions from "@opt/core/distributions";
import * as schedules from "@opt/core/schedules";
import * as nn from "@opt/nn";
import * as optim from "@opt/optim";
import { argumentsOf, type Definition, definitionsIn, expressionOf, operandsOf } from "@opt/testkit";
import { coverageIn } from "./coverage";
import { INSTEAD, NAMED } from "./torch-instead";

const DEFINITIONS = definitionsIn(core);
const SHOWN = { axis: 1, flag: true };
const PROTOTYPE = core.Tensor.prototype as object;
/** Methods that have another name than their function. */
const METHODS: Readonly<Record<string, string>> = { variance: "var" };

/** PyTorch's call as users know it. */
function torchOf(definition: Definition): string[] {
  const [, known] = definition.torch.split(" # ");
  // What only tests need.
  const written = expressionOf(definition, SHOWN).replace(/\.(long|detach)\(\)/g, "");
  if (known === undefined) return [written];
  return /^\w+ \S+ \w+$/.test(written) ? [written, known] : [known];
}

function javascript(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(javascript).join(", ")}]`;
  if (typeof value !== "object" || value === null) return value === undefined ? "" : String(value);
  return `{ ${Object.entries(value)
    .map(([name, each]) => `${name}: ${javascript(each)}`)
    .join(", ")} }`;
}

/** The same call here, as a method where there is one. */
function oursOf(definition: Definition): string {
  const { name } = definition;
  const tensors = [..."abc"].slice(0, operandsOf(definition).length);
  // Texts of arguments are quoted, names of tensors are not.
  const quoted = { ...definition, arguments: definition.arguments?.map(withQuotes) ?? [] };
  const [first, ...rest] = argumentsOf(quoted as Definition, tensors, SHOWN).map(javascript);
  const method = METHODS[name] ?? name;
  if (first === "a" && method in PROTOTYPE) return `a.${method}(${rest.join(", ")})`;
  return `${name}(${[first, ...rest].join(", ")})`;
}

const withQuotes = (value: unknown): unknown =>
  typeof value === "string" && !value.startsWith("$") ? JSON.stringify(value) : value;

const code = (text: string) => `\`${text.replaceAll("|", "\\|")}\``;

/** A row for each op that has a definition. */
export function opTable(): string {
  const rows = [...DEFINITIONS.values()].map(
    (definition) => `| ${torchOf(definition).map(code).join(", ")} | ${code(oursOf(definition))} |`,
  );
  const byName = (row: string) => /(?:torch\.(?:linalg\.)?|F\.|a\.)(\w+)\(/.exec(row)?.[1] ?? "";
  return ["| PyTorch | Opt |", "|---|---|", ...rows.sort((a, b) => (byName(a) < byName(b) ? -1 : 1))].join("\n");
}

/** The functions that a definition's PyTorch expression calls: `torch.log2(a)` is log2. */
const DEFINED = new Map(
  [...DEFINITIONS.values()].flatMap((definition) =>
    torchOf(definition).flatMap((call) => {
      const name = /(?:torch\.(?:linalg\.)?|F\.|a\.)(\w+)\(/.exec(call)?.[1];
      return name === undefined ? [] : [[name, definition.name] as const];
    }),
  ),
);

const EXPORTS: Readonly<Record<string, unknown>> = { ...distributions, ...optim, ...schedules, ...nn, ...core };
const LAYERS = new Map(Object.keys(nn).map((name) => [name.toLowerCase(), name]));

/** What to write for a name that is not here: a layer may do it. */
function insteadOf(name: string): string | undefined {
  const layer = LAYERS.get(name.replaceAll("_", ""));
  return INSTEAD[name] ?? (layer && /^[A-Z]/.test(layer) ? "the layer of this name, as `GroupNorm`" : undefined);
}

const camelCase = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** What a name of PyTorch is here; undefined where it is not. */
export function oursFor(name: string): string | undefined {
  const same = camelCase(name);
  if (DEFINED.has(name)) return DEFINED.get(name);
  if (same in EXPORTS) return same;
  return same in PROTOTYPE ? `x.${same}` : NAMED[name];
}

/** Names that there are, and others with what to do instead: by module. */
export function featuresPage(names: Readonly<Record<string, readonly string[]>>, coverage: string): string {
  const columns = coverageIn(coverage);
  const devices = Object.keys(columns);
  const missingOn = (ours: string) => devices.filter((device) => columns[device]![ours] === "none");
  const counts: string[] = [];
  const sections = Object.entries(names).map(([module, all]) => {
    const here = all.filter((name) => oursFor(name) !== undefined);
    const others = all.filter((name) => oursFor(name) === undefined);
    counts.push(`| \`${module}\` | ${here.length} | ${all.length} |`);
    const groups = new Map<string, string[]>();
    for (const name of here) {
      const ours = oursFor(name)!;
      const without = missingOn(ours);
      const on =
        without.length === 0 ? "every device" : devices.filter((device) => !without.includes(device)).join(", ");
      const shown = ours === name ? code(name) : `${code(name)} as ${code(ours)}`;
      groups.set(on, [...(groups.get(on) ?? []), shown]);
    }
    return [
      `## ${module}`,
      ...(here.length === 0 ? [] : [...groups].map(([on, shown]) => listed(`Here, on ${on}`, shown))),
      ...(others.length === 0 ? [] : [notHere(others)]),
    ].join("\n\n");
  });
  return [HEADER, ["| Module | here | in PyTorch |", "|---|---|---|", ...counts].join("\n"), ...sections, ""].join(
    "\n\n",
  );
}

/** A table of one column: beside others, long lists are tall. */
const listed = (head: string, names: readonly string[]) => `| ${head} |\n|---|\n| ${names.join(", ")} |`;

function notHere(names: readonly string[]): string {
  const groups = new Map<string | undefined, string[]>();
  for (const name of names) {
    const instead = insteadOf(name);
    groups.set(instead, [...(groups.get(instead) ?? []), name]);
  }
  const without = groups.get(undefined)?.map(code);
  groups.delete(undefined);
  const rows = [...groups].map(([instead, all]) => `| ${all.map(code).join(", ")} | ${instead} |`);
  return [
    ...(rows.length > 0 ? [["| Not here | Instead |", "|---|---|", ...rows].join("\n")] : []),
    ...(without ? [listed("Not here, without a replacement", without)] : []),
  ].join("\n\n");
}

const HEADER = `---
title: What exists
aside: false
pageClass: wide
---

# What exists

The first table counts the public names of PyTorch 2.13 that Opt has. A section for each module lists them.

[Coverage](coverage.md) has the dtypes on each device. The [migration tables](migration.md) show the calls.

Where a table says "js, wasm, cpu", the host computes. On \`cuda\` it does so too, with one warning. On \`webgpu\` the call throws, because the host must wait for the numbers: [move them first](webgpu.md#compute-on-the-host).`;
