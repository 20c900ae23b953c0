export { type ErrorCode, OptError } from "./errors";
export { defineRule, type Rule, type RuleDefinition } from "./rule/rule";
