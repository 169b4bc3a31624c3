# What replaces the vDSO's clocks in a server: the kernel's time plus an offset.
# Intel syntax for x86_64; patch.rs has it as bytes. A test compares the two.
.intel_syntax noprefix

wall:                           # seconds and nanoseconds (0 .. 1e9-1) to add
 .quad 0, 0
monotonic:
 .quad 0, 0

clock_gettime:                  # edi: which clock, rsi: the result
 mov eax, 228
 syscall
 test eax, eax
 jne 3f
 lea rcx, [rip+wall]
 cmp edi, 0                     # CLOCK_REALTIME
 je 1f
 cmp edi, 5                     # CLOCK_REALTIME_COARSE
 je 1f
 lea rcx, [rip+monotonic]
 cmp edi, 1                     # CLOCK_MONOTONIC
 je 1f
 cmp edi, 4                     # CLOCK_MONOTONIC_RAW
 je 1f
 cmp edi, 6                     # CLOCK_MONOTONIC_COARSE
 je 1f
 cmp edi, 7                     # CLOCK_BOOTTIME
 jne 3f
1:
 mov rdx, [rcx+8]
 mov rcx, [rcx]
 add rdx, [rsi+8]
 cmp rdx, 1000000000
 jl 2f
 sub rdx, 1000000000
 inc rcx
2:
 mov [rsi+8], rdx
 add [rsi], rcx
3:
 ret

.balign 16
gettimeofday:                   # rdi: the result
 test rdi, rdi
 je 4f
 push rdi
 sub rsp, 16
 xor edi, edi
 mov rsi, rsp
 call clock_gettime
 mov rcx, [rsp]
 mov rax, [rsp+8]
 add rsp, 16
 pop rdi
 mov [rdi], rcx
 xor edx, edx
 mov ecx, 1000
 div rcx
 mov [rdi+8], rax
4:
 xor eax, eax
 ret

.balign 16
time:                           # rdi: where the result goes, too
 push rdi
 sub rsp, 16
 xor edi, edi
 mov rsi, rsp
 call clock_gettime
 mov rax, [rsp]
 add rsp, 16
 pop rdi
 test rdi, rdi
 je 5f
 mov [rdi], rax
5:
 ret
