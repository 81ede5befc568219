// SPDX-License-Identifier: BSD-2-Clause
//! smoltcp behind six functions of C, which stack_smoltcp.c finds in this library.
//!
//! A `Stack` has one socket, which listens at one port of one address; its time is
//! what `smoltcp_pass()` has added up.  Packets begin with their IPv4 header.

use std::cell::Cell;
use std::collections::VecDeque;
use std::slice;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpCidr, Ipv4Address, Ipv4Cidr};

const MTU: usize = 1500;
const BUFFER_LEN: usize = 65535;

/// What smoltcp_read() returns when there are no bytes.
const NOTHING: i32 = 0;
const FINISHED: i32 = -1;
const RESET: i32 = -2;

thread_local! {
    // smoltcp asks a function without arguments for its timestamps.
    static NOW_MS: Cell<u32> = const { Cell::new(0) };
}

fn timestamp() -> u32 {
    NOW_MS.with(Cell::get)
}

// ---- The card: packets in both directions.

#[derive(Default)]
struct Card {
    received: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
}

struct Received(Vec<u8>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

struct Sending<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, fill: F) -> R {
        let mut packet = vec![0; len];
        let result = fill(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Card {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Received, Sending<'_>)> {
        let packet = self.received.pop_front()?;
        Some((Received(packet), Sending(&mut self.sent)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Sending<'_>> {
        Some(Sending(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut found = DeviceCapabilities::default();
        found.medium = Medium::Ip;
        found.max_transmission_unit = MTU;
        found
    }
}

// ---- The stack.

pub struct Stack {
    card: Card,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    now: Instant,
}

impl Stack {
    fn new(address: u32, port: u16) -> Self {
        let now = Instant::from_millis(1000);
        let mut card = Card::default();
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut card, now);
        let own = Ipv4Cidr::new(Ipv4Address::from(address), 24);
        let mut sockets = SocketSet::new(Vec::new());
        let mut socket = tcp::Socket::new(
            tcp::SocketBuffer::new(vec![0; BUFFER_LEN]),
            tcp::SocketBuffer::new(vec![0; BUFFER_LEN]),
        );

        interface.update_ip_addrs(|list| list.push(IpCidr::Ipv4(own)).expect("no room"));
        socket.set_tsval_generator(Some(timestamp));
        socket.listen(port).expect("a socket that listens");
        let socket = sockets.add(socket);
        Stack { card, interface, sockets, socket, now }
    }

    fn poll(&mut self) {
        NOW_MS.with(|now| now.set(self.now.total_millis() as u32));
        self.interface.poll(self.now, &mut self.card, &mut self.sockets);
    }

    fn read(&mut self, bytes: &mut [u8]) -> i32 {
        let socket = self.sockets.get_mut::<tcp::Socket>(self.socket);

        match socket.recv_slice(bytes) {
            Ok(len) => len as i32,
            Err(tcp::RecvError::Finished) => {
                socket.close();
                FINISHED
            }
            Err(tcp::RecvError::InvalidState) if socket.state() == tcp::State::Closed => RESET,
            Err(tcp::RecvError::InvalidState) => NOTHING,
        }
    }
}

// ---- The functions.  Callers keep the pointer valid, and the lengths of buffers right.

#[no_mangle]
pub extern "C" fn smoltcp_new(address: u32, port: u16) -> *mut Stack {
    Box::into_raw(Box::new(Stack::new(address, port)))
}

/// # Safety
/// `stack` is from smoltcp_new(), and is not used again.
#[no_mangle]
pub unsafe extern "C" fn smoltcp_free(stack: *mut Stack) {
    drop(Box::from_raw(stack));
}

/// # Safety
/// `packet` has `len` bytes.
#[no_mangle]
pub unsafe extern "C" fn smoltcp_input(stack: *mut Stack, packet: *const u8, len: usize) {
    let stack = &mut *stack;

    stack.card.received.push_back(slice::from_raw_parts(packet, len).to_vec());
    stack.poll();
}

/// The next packet that was sent.  Returns its length, or 0.
///
/// # Safety
/// `packet` has room for `room` bytes.
#[no_mangle]
pub unsafe extern "C" fn smoltcp_output(stack: *mut Stack, packet: *mut u8, room: usize) -> usize {
    match (*stack).card.sent.pop_front() {
        Some(sent) if sent.len() <= room => {
            slice::from_raw_parts_mut(packet, sent.len()).copy_from_slice(&sent);
            sent.len()
        }
        _ => 0,
    }
}

/// # Safety
/// `stack` is from smoltcp_new().
#[no_mangle]
pub unsafe extern "C" fn smoltcp_pass(stack: *mut Stack, ms: u32) {
    (*stack).now += Duration::from_millis(ms.into());
    (*stack).poll();
}

/// Returns how many bytes were read, or why none were.
///
/// # Safety
/// `bytes` has room for `room` bytes.
#[no_mangle]
pub unsafe extern "C" fn smoltcp_read(stack: *mut Stack, bytes: *mut u8, room: usize) -> i32 {
    (*stack).read(slice::from_raw_parts_mut(bytes, room))
}
