// Short names for the types that are generated from the server's OpenAPI document.
import type { components } from './types.gen';

type Schemas = components['schemas'];

export type Runs = Schemas['RunsBody'];
export type RunInfo = Schemas['RunInfo'];
export type Workers = Schemas['WorkersBody'];
export type WorkerInfo = Schemas['WorkerInfo'];
export type FileState = Schemas['FileState'];
export type ErrorInfo = Schemas['ErrorInfo'];
export type OtherTools = Schemas['OtherToolsInfo'];
export type ProgressInfo = Schemas['ProgressInfo'];
export type Health = Schemas['HealthBody'];
export type FileHealth = Schemas['FileHealthInfo'];
export type Views = Schemas['ViewsBody'];
export type ViewInfo = Schemas['ViewInfo'];
type Pending = Schemas['PendingBody'];
export type Overview = Schemas['Overview'];
export type Device = Schemas['Device'];
export type HardwareUse = Schemas['HardwareUse'];
export type Recommendation = Schemas['Recommendation'];
export type ModulesPayload = Schemas['ModulesPayload'];
export type FamilyPart = Schemas['FamilyPart'];
export type ModuleClass = Schemas['ModuleClass'];
export type ModuleRow = Schemas['ModuleRow'];
export type ModuleFlame = Schemas['ModuleFlame'];
export type ModuleInstances = Schemas['ModuleInstances'];
export type CallTreeLevel = Schemas['CallTreeLevel'];
export type CallNode = Schemas['CallNode'];
export type LightningPayload = Schemas['LightningPayload'];
export type HookRow = Schemas['HookRow'];

export type ServingPayload = Schemas['ServingPayload'];
export type ServingColumns = Schemas['IterationColumns'];
export type ServingIterations = Schemas['IterationsPayload'];
export type ServingPhase = Schemas['PhaseRow'];
export type ServingStall = Schemas['StallRow'];
export type ServingRanks = Schemas['ServingRanks'];
export type ServingOrigins = Schemas['ServingOrigins'];
export type ServingRankRow = Schemas['ServingRankRow'];
export type CostTerm = Schemas['CostTerm'];

export type OperatorsPayload = Schemas['OperatorsPayload'];
export type OperatorRow = Schemas['OperatorRow'];
export type OperatorStacks = Schemas['OperatorStacksPayload'];
export type OriginTimes = Schemas['OriginTimesPayload'];
export type OriginTimeRow = Schemas['OriginTimeRow'];
export type KernelsPayload = Schemas['KernelsPayload'];
export type KernelRow = Schemas['KernelRow'];
export type RooflinePayload = Schemas['RooflinePayload'];
export type RooflineRow = Schemas['RooflineRow'];
export type RooflineCounters = Schemas['RooflineCounters'];
export type CounterRow = Schemas['CounterRow'];
export type Speed = Schemas['Speed'];
export type DevicePeaks = Schemas['DevicePeaks'];
export type MemoryOperationRow = Schemas['MemoryOperationRow'];
export type IdlePayload = Schemas['IdlePayload'];
export type CriticalPathPayload = Schemas['CriticalPathPayload'];
export type JobPathPayload = Schemas['JobPathPayload'];
export type JobPathSegment = Schemas['JobPathSegment'];
export type TargetRow = Schemas['TargetRow'];
export type PathCategory = Schemas['PathCategory'];
export type PathGroupRow = Schemas['PathGroupRow'];
export type PathGroupsPayload = Schemas['PathGroupsPayload'];
export type IdleRow = Schemas['IdleRow'];
export type IdleGapsPayload = Schemas['IdleGapsPayload'];
export type IdleFlamePayload = Schemas['IdleFlamePayload'];
export type LaunchesPayload = Schemas['LaunchesPayload'];
export type QueuesPayload = Schemas['QueuesPayload'];
export type BandwidthPayload = Schemas['BandwidthPayload'];
export type SequencesPayload = Schemas['SequencesPayload'];
export type SequenceRow = Schemas['SequenceRow'];
export type MemoryPayload = Schemas['MemoryPayload'];
export type MemoryDevice = Schemas['MemoryDeviceEntry'];
export type MemoryCurve = Schemas['MemoryCurve'];
export type MemoryLive = Schemas['MemoryLive'];
export type MemoryEvents = Schemas['MemoryEvents'];
export type MemoryEvent = Schemas['MemoryEvent'];
export type MemoryOperators = Schemas['MemoryOperators'];
export type MemorySnapshot = Schemas['MemorySnapshot'];
export type MemoryTimeline = Schemas['MemoryTimeline'];
export type MemoryInstant = Schemas['MemoryInstant'];
export type SnapshotComparison = Schemas['SnapshotComparison'];
export type SnapshotRanks = Schemas['SnapshotRanks'];
export type MemoryFit = Schemas['MemoryFit'];
export type AddressMap = Schemas['AddressMap'];
export type MemoryFileInfo = Schemas['MemoryFileInfo'];
export type MemoryGrowth = Schemas['MemoryGrowth'];
export type HangsPayload = Schemas['HangsPayload'];
export type HangStack = Schemas['HangStack'];
export type HangRankRow = Schemas['HangRankRow'];
export type HangGroupRow = Schemas['HangGroupRow'];
export type HangCallRow = Schemas['HangCallRow'];
export type DistributedPayload = Schemas['DistributedPayload'];
export type OverlapPayload = Schemas['OverlapPayload'];
export type OverlapComparison = Schemas['OverlapComparison'];
export type JobRank = Schemas['JobRank'];
export type JobRanks = Schemas['JobRanks'];
export type RankMap = Schemas['RankMap'];
export type RankFamily = Schemas['RankFamily'];
export type GroupRow = Schemas['GroupRow'];
export type GroupFamily = Schemas['GroupFamily'];
export type RankSpreadRow = Schemas['RankSpreadRow'];
export type CollectivesPayload = Schemas['CollectivesPayload'];
export type CollectiveInstance = Schemas['CollectiveInstance'];
export type CollectivePayload = Schemas['CollectivePayload'];
export type RankCollectiveRow = Schemas['RankCollectiveRow'];
export type StragglerRow = Schemas['StragglerRow'];
export type StragglerActivityRow = Schemas['StragglerActivityRow'];
export type ConnectionsPayload = Schemas['ConnectionsPayload'];
export type DiffPayload = Schemas['DiffPayload'];
export type DiffLevel = Schemas['DiffLevel'];
export type DiffPart = Schemas['DiffPart'];
export type DiffOperator = Schemas['DiffOperator'];
export type DiffFamily = Schemas['DiffFamily'];
export type DiffKernel = Schemas['DiffKernel'];
export type DiffChange = Schemas['Change'];
export type DiffWaterfall = Schemas['DiffWaterfall'];
export type CallDistribution = Schemas['CallDistribution'];
export type TracePayload = Schemas['TracePayload'];
export type TraceTile = Schemas['TraceTile'];
export type TraceCounters = Schemas['TraceCounters'];
export type TracePath = Schemas['TracePath'];
export type TraceMoment = Schemas['TraceMoment'];
export type TraceEvent = Schemas['TraceEvent'];
export type TraceModule = Schemas['TraceModule'];
export type OriginEvent = Schemas['OriginEvent'];
export type OriginsPayload = Schemas['OriginsPayload'];
export type OriginRow = Schemas['OriginRow'];
export type TraceFlows = Schemas['TraceFlows'];
export type TraceHeadline = Schemas['TraceHeadline'];
export type TraceSearch = Schemas['TraceSearch'];
export type TraceHits = Schemas['TraceHits'];
export type TraceSelection = Schemas['TraceSelection'];
export type TraceColors = Schemas['TraceColors'];
export type TraceRef = Schemas['TraceRef'];

interface Ready<P> {
  state: 'ready';
  view: string;
  run: string;
  worker: string;
  span: string;
  /** Files of a run that the payload does not include yet. */
  loading: number;
  /** The trace that a pair is compared with. */
  base: Required<Selectors> | null;
  payload: P;
}

export type ViewAnswer<P> = Ready<P> | Pending;

/** The selected trace; a missing name means the first. */
export interface Selectors {
  run?: string;
  worker?: string;
  span?: string;
}
