import { beforeEach } from "vitest";
import { TOO_LONG } from "./areas.mjs";

// Every bug that nobody notices has all tests of its lines run: not those that take seconds.
beforeEach(({ task, skip }) => {
  if (TOO_LONG.includes(task.name)) skip();
});
