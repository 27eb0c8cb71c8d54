from gateway.call.hooks import Call as Call
from gateway.call.hooks import CallHook as CallHook
from gateway.call.hooks import CallHooks as CallHooks
from gateway.call.hooks import Proceed as Proceed
from gateway.call.hooks import Unsent as Unsent
from gateway.call.resources import ResourceLibrary as ResourceLibrary
