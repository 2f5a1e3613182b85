"""The Lightning tab."""

from torch_tb_profiler.model.lightning import lightning_modules
from torch_tb_profiler.view import NoParams, Tab, TraceView
from torch_tb_profiler.views._shared.module_parts import module_views
from torch_tb_profiler.views.lightning.build import build, unavailable
from torch_tb_profiler.views.lightning.payload import LightningPayload

TAB = Tab(
    "Where the time goes",
    TraceView("lightning", "Lightning", NoParams, LightningPayload, build, cached="on_request"),
    unavailable,
    module_views("lightning", lightning_modules),
)

__all__ = ["TAB"]
