/** Writes update rules out as C++: one function template a rule and a table by hash. */
import { DIVISOR_REACH, multipliedRoots, type Program, type Rule, writeStatements } from "@opt/core/backend";
import { cpp } from "./dialect";

export interface GeneratedRules {
  /** Included by every instruction set: the functions and their table. */
  readonly functions: string;
  /** Included by the addon: the hashes in the table's order. */
  readonly hashes: string;
}

/** Rules that compute the same (equal hashes) are written once. */
export function writeRules(rules: readonly Rule[]): GeneratedRules {
  const distinct = [...new Map(rules.map((rule) => [rule.hash, rule])).values()];
  const rows = distinct.map(({ hash }) => `    {rule_${hash}<float>, rule_${hash}<double>},`);
  const most = (counts: readonly number[]) => Math.max(1, ...counts);
  return {
    functions: [
      "// Written by @opt/kernels-cpu from the rules of the algorithm packages.",
      "",
      ...distinct.flatMap((rule) => [writeRule(rule), ""]),
      `constexpr int MAX_BUFFERS = ${most(distinct.map(({ buffers }) => buffers.length))};`,
      `constexpr int MAX_SCALARS = ${most(distinct.map(({ scalars }) => scalars.length))};`,
      `constexpr Rule RULES[] = {\n${rows.join("\n")}\n};`,
      "",
    ].join("\n"),
    hashes: distinct.map(({ hash, name }) => `"${hash}",  // ${name}\n`).join(""),
  };
}

/** One rule as a function over elements `begin` to `end` of its buffers. */
export function writeRule({ buffers, writes, program, name, hash }: Rule): string {
  const pointers = buffers.map((buffer, slot) => {
    const constness = writes.includes(buffer) ? "T*" : "const T*";
    return `  ${constness} ${buffer}Array = buffers[${slot}];`;
  });
  const { program: faster, divisors } = multipliedRoots(program);
  const conditions = divisors.map((slot) => `isMultiplied(scalars[${slot}], ${DIVISOR_REACH})`);
  return [
    `// ${name}`,
    "template <typename T>",
    `void rule_${hash}(T* const* buffers, [[maybe_unused]] const T* scalars, int64_t begin, int64_t end) {`,
    ...pointers,
    ...(divisors.length === 0
      ? []
      : [`  if (${conditions.join(" && ")}) {`, ...writeLoop(faster).map((line) => `  ${line}`), "    return;", "  }"]),
    ...writeLoop(program),
    "}",
  ].join("\n");
}

/** What is uniform, and the loop over elements. */
function writeLoop(program: Program): string[] {
  const { uniform, element } = writeStatements(program, cpp, "f64", {
    scalar: (slot) => `scalars[${slot}]`,
    load: (_slot, buffer) => `${buffer}Array[i]`,
    store: (_slot, buffer, value) => `${buffer}Array[i] = ${value};`,
  });
  return [
    ...uniform.map((line) => `  ${line}`),
    "  OPT_INDEPENDENT",
    "  for (int64_t i = begin; i < end; i++) {",
    ...element.map((line) => `    ${line}`),
    "  }",
  ];
}
