import { check, show } from "@opt/core";

/** Groups divide the channels. @throws OptError BAD_ARGUMENT */
export function checkGroups(where: string, groups: number, channels: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(channels)) {
    check(
      Number.isInteger(groups) && groups >= 1 && count % groups === 0,
      "BAD_ARGUMENT",
      where,
      () => `groups must be an integer that divides ${name}, ${count}, got ${show(groups)}.`,
      "Use 1.",
    );
  }
}
