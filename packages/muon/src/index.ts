export { Muon } from "./muon";
export type { MuonOptions } from "./options";
